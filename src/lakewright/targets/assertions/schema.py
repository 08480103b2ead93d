"""The `schema` assertion: checks that a mapping has exactly the declared columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.schema.diff import DiffRules
from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import KindOf
from lakewright.spec.models.fields import Field, TypeText
from lakewright.targets.assertions.assertion import MappingAssertion, Verdict
from lakewright.targets.difference_words import differences_told

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["SchemaAssertion"]


class SchemaAssertion(MappingAssertion):
    """Holds if names, types, nullability and order are as declared; some differences can be ignored."""

    columns: dict[str, TypeText] | None = Declared(default=None, description="Columns with their types.")
    declared_schema: Annotated[Schema, KindOf("schema", default="inline")] | None = Declared(
        default=None, alias="schema", description="Columns, instead of `columns`."
    )
    ignore_types: bool = Declared(default=False, description="Compare column names only.")
    ignore_nullability: bool = Declared(default=False, description="Ignore whether columns may be null.")
    ignore_case: bool = Declared(default=False, description="Ignore the case of column names.")
    ignore_order: bool = Declared(default=False, description="Ignore the order of columns.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.columns is None) == (self.declared_schema is None):
            raise ValueError("a schema assertion needs either `columns` or `schema`")
        return self

    def check(self, workspace: Workspace) -> Verdict:
        """Return the differences between the mapping's columns and the declared ones."""
        rules = DiffRules(
            types=not self.ignore_types,
            # A map of names to types says nothing about nulls.
            nullability=not (self.ignore_nullability or self.ignore_types) and self.columns is None,
            case=not self.ignore_case,
            order=not self.ignore_order,
        )
        return Verdict(differences_told(workspace.fields(self.mapping), self._expected(workspace), rules))

    def _expected(self, workspace: Workspace) -> tuple[Field, ...]:
        if self.declared_schema is not None:
            return self.declared_schema.fields(workspace)
        return tuple(Field(name=name, type=found) for name, found in (self.columns or {}).items())
