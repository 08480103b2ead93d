"""The base class of schemas, and of definitions that declare columns."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.spec.models.base import KindOf, Named
from lakewright.spec.models.fields import Field, TypeText

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace


class Schema(Named):
    """Declares the columns of a relation, a mapping or a check."""

    @abstractmethod
    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the columns, in order."""

    def primary_key(self) -> tuple[str, ...]:
        """Return the names of the columns that identify a row; none if no key is declared."""
        return ()

    def mappings(self) -> tuple[str, ...]:
        """Return the names of the mappings that the columns are taken from."""
        return ()


class DeclaredColumns(Named):
    """A definition with columns: a map of names to types, or a schema."""

    columns: dict[str, TypeText] | None = Declared(default=None, description="Columns with their types.")
    declared_schema: Annotated[Schema, KindOf("schema", default="inline")] | None = Declared(
        default=None, alias="schema", description="Columns, instead of `columns`."
    )

    @model_validator(mode="after")
    def _check_columns(self) -> Self:
        if (self.columns is None) == (self.declared_schema is None):
            raise ValueError(f"kind {self.kind!r} needs either `columns` or `schema`")
        return self

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the declared columns with their types."""
        if self.declared_schema is not None:
            return self.declared_schema.fields(workspace)
        return tuple(Field(name=name, type=found) for name, found in (self.columns or {}).items())
