"""The `relation` dataset: a relation, or a partition of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field as Declared

from lakewright.lake.partition import Partition
from lakewright.relations.relation import Relation
from lakewright.spec.models.base import Reference, TextMap
from lakewright.targets.datasets.dataset import RelationLike
from lakewright.workspace.reference import RelationReference, referenced

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["RelationDataset"]


class RelationDataset(RelationLike):
    """Reads and writes a relation, or a partition of it."""

    deferred: ClassVar[frozenset[str]] = frozenset({"relation.pattern"})

    relation: RelationReference = Declared(description="Name of the relation, or the relation itself.")
    partition: TextMap = Declared(
        default_factory=dict, description="Value of each partition column; by default the whole relation."
    )

    def references(self) -> Iterable[Reference]:
        """Return the relation."""
        return referenced(self.relation)

    def source(self, workspace: Workspace) -> Relation:
        """Return the relation."""
        return Relation.named(workspace, self.relation)

    def chosen(self) -> Partition:
        """Return the partition."""
        return self.partition
