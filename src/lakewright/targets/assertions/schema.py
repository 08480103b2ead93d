"""The `schema` assertion: a mapping has exactly the declared columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.lake.difference import SchemaRules, schema_differences
from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import KindOf
from lakewright.spec.models.fields import Field, TypeText
from lakewright.targets.assertions.assertion import MappingAssertion, Verdict

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["SchemaAssertion"]


class SchemaAssertion(MappingAssertion):
    """Holds if names, types, nullability and order are as declared, but for what it is told to ignore."""

    columns: dict[str, TypeText] | None = Declared(default=None, description="Columns with their types.")
    declared_schema: Annotated[Schema, KindOf("schema", default="inline")] | None = Declared(
        default=None, alias="schema", description="Columns, in place of `columns`."
    )
    ignore_types: bool = Declared(default=False, description="Compare names only.")
    ignore_nullability: bool = Declared(default=False, description="Leave out whether columns may be null.")
    ignore_case: bool = Declared(default=False, description="Let names match in any case.")
    ignore_order: bool = Declared(default=False, description="Let columns come in any order.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.columns is None) == (self.declared_schema is None):
            raise ValueError("a schema assertion has one of `columns` and `schema`")
        return self

    def check(self, workspace: Workspace) -> Verdict:
        """Return the differences."""
        rules = SchemaRules(
            types=not self.ignore_types,
            # A map of names to types says nothing about nulls.
            nullability=not (self.ignore_nullability or self.ignore_types) and self.columns is None,
            case=not self.ignore_case,
            order=not self.ignore_order,
        )
        return Verdict(schema_differences(workspace.fields(self.mapping), self._expected(workspace), rules))

    def _expected(self, workspace: Workspace) -> tuple[Field, ...]:
        if self.declared_schema is not None:
            return self.declared_schema.fields(workspace)
        return tuple(Field(name=name, type=found) for name, found in (self.columns or {}).items())
