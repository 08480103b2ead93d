"""The base of mappings whose columns are declared, because they have no input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.mappings.mapping import Mapping
from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import KindOf
from lakewright.spec.models.fields import Field, TypeText
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["LiteralMapping"]


class LiteralMapping(Mapping):
    """A mapping with declared columns."""

    columns: dict[str, TypeText] | None = Declared(default=None, description="Columns with their types.")
    declared_schema: Annotated[Schema, KindOf("schema", default="inline")] | None = Declared(
        default=None, alias="schema", description="Columns, instead of `columns`."
    )

    @model_validator(mode="after")
    def _check_columns(self) -> Self:
        if (self.columns is None) == (self.declared_schema is None):
            article = "an" if self.kind == "empty" else "a"
            raise ValueError(f"{article} {self.kind} mapping needs either `columns` or `schema`")
        return self

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the declared columns."""
        return tuple(each.name for each in self.fields(workspace))

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the declared columns with their types."""
        if self.columns is not None:
            return tuple(Field(name=name, type=found) for name, found in self.columns.items())
        return self.declared_schema.fields(workspace) if self.declared_schema else ()
