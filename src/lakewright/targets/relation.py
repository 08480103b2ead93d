"""The `relation` target: a mapping's rows in a relation, or a relation by itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field as Declared

from lakewright.lake.reference import RelationReference, referenced
from lakewright.relations.relation import Relation
from lakewright.spec.model import Reference
from lakewright.targets.writing import WritingTarget

if TYPE_CHECKING:
    from lakewright.lake.workspace import Workspace

__all__ = ["RelationTarget"]


class RelationTarget(WritingTarget):
    """Creates or migrates a relation, writes a mapping's rows into it, and sees that they are there.

    Without a mapping it only creates, checks and removes the relation.
    """

    deferred: ClassVar[frozenset[str]] = frozenset({"relation.pattern"})

    relation: RelationReference = Declared(description="Name of the relation, or the relation itself.")

    def references(self) -> Iterable[Reference]:
        """Return the mapping and the relation."""
        return [*super().references(), *referenced(self.relation)]

    def output(self, workspace: Workspace) -> Relation:
        """Return the relation."""
        return Relation.named(workspace, self.relation)
