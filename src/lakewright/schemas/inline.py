"""The `inline` schema: columns declared in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import Listed, Texts
from lakewright.spec.models.fields import Field

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["InlineSchema"]


class InlineSchema(Schema):
    """The columns are those of `fields`."""

    declared_fields: Listed[Field] = Declared(alias="fields", description="The columns, in order.")
    declared_key: Texts = Declared(
        default=(), alias="primaryKey", description="Columns that together identify a row."
    )

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the declared columns."""
        return self.declared_fields

    def primary_key(self) -> tuple[str, ...]:
        """Return the declared key."""
        return self.declared_key
