"""The `values` mapping: literal rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.lake.columns import frame_of_records
from lakewright.mappings.mapping import Mapping
from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import KindOf, Rows
from lakewright.spec.models.fields import Field, TypeText
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["ValuesMapping"]


class ValuesMapping(Mapping):
    """Returns its records with the columns of `columns` or `schema`."""

    records: Rows = Declared(
        default_factory=list, description="Rows: lists of values, or maps of column to value."
    )
    columns: dict[str, TypeText] | None = Declared(default=None, description="Columns with their types.")
    declared_schema: Annotated[Schema, KindOf("schema", default="inline")] | None = Declared(
        default=None, alias="schema", description="Columns, instead of `columns`."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.columns is None) == (self.declared_schema is None):
            raise ValueError("a values mapping needs either `columns` or `schema`")
        return self

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the declared columns."""
        del columns_of
        if self.columns is not None:
            return tuple(self.columns)
        fields = self.declared_schema.fields(workspace) if self.declared_schema else ()
        return tuple(each.name for each in fields)

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the records."""
        if self.columns is not None:
            fields = tuple(Field(name=name, type=found) for name, found in self.columns.items())
        else:
            fields = self.declared_schema.fields(workspace) if self.declared_schema else ()
        return frame_of_records(workspace.spark, fields, self.records)
