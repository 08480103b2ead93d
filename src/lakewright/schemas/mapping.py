"""The `mapping` schema: the columns of a mapping."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import Reference
from lakewright.spec.models.fields import Field

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["MappingSchema"]


class MappingSchema(Schema):
    """The columns are those of a mapping's frame, for which Spark is started."""

    mapping: str = Declared(description="Name of the mapping.")

    def references(self) -> Iterable[Reference]:
        """Return the mapping."""
        return [Reference("mapping", self.mapping, ("mapping",))]

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the columns of the mapping's frame."""
        return workspace.fields(self.mapping)

    def mappings(self) -> tuple[str, ...]:
        """Return the mapping."""
        return (self.mapping,)
