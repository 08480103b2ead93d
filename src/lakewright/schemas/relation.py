"""The `relation` schema: the columns of another relation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import Reference
from lakewright.spec.models.fields import Field

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["RelationSchema"]


class RelationSchema(Schema):
    """The columns are those of a relation: those it declares, otherwise those it has."""

    relation: str = Declared(description="Name of the relation.")

    def references(self) -> Iterable[Reference]:
        """Return the relation."""
        return [Reference("relation", self.relation, ("relation",))]

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the columns of the relation."""
        return workspace.relation(self.relation).fields(workspace)
