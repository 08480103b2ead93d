"""The `schema` mapping: brings its input to the declared columns, according to the policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.lake.columns import conform, fields_of
from lakewright.mappings.mapping import InputMapping
from lakewright.mappings.mismatch import ColumnPolicy, ColumnPolicyText, TypePolicy, TypePolicyText
from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import KindOf
from lakewright.spec.models.fields import Field, TypeText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["SchemaMapping"]


class SchemaMapping(InputMapping):
    """Adds, removes and casts columns to match the declaration."""

    columns: dict[str, TypeText] | None = Declared(default=None, description="Columns with their types.")
    declared_schema: Annotated[Schema, KindOf("schema", default="inline")] | None = Declared(
        default=None, alias="schema", description="Columns, instead of `columns`."
    )
    column_mismatch_policy: ColumnPolicyText = Declared(
        default=ColumnPolicy.ADD_REMOVE_COLUMNS, description="What happens to columns that only one side has."
    )
    type_mismatch_policy: TypePolicyText = Declared(
        default=TypePolicy.CAST_ALWAYS, description="What happens to columns of another type."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.columns is None) == (self.declared_schema is None):
            raise ValueError("a schema mapping needs either `columns` or `schema`")
        return self

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the declared columns.

        Raises:
            TargetError: There is a difference and the policy is ERROR.
        """
        wanted = self._fields(workspace)
        present = fields_of(frame.schema)
        columns = self.column_mismatch_policy.choose(present, wanted, self.name)
        return conform(
            frame, [self.type_mismatch_policy.choose(field, present, self.name) for field in columns]
        )

    def _fields(self, workspace: Workspace) -> tuple[Field, ...]:
        if self.declared_schema is not None:
            return self.declared_schema.fields(workspace)
        return tuple(Field(name=name, type=found) for name, found in (self.columns or {}).items())
