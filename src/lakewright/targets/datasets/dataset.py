"""What every dataset is: rows, from wherever they come."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from lakewright.errors import SpecError
from lakewright.lake.partition import Partition, canonical_partition
from lakewright.plan.resource import Resource
from lakewright.relations.relation import Relation, StoredRelation
from lakewright.spec.models.base import Named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["Dataset", "RelationLike"]


class Dataset(Named):
    """A dataset as declared."""

    @abstractmethod
    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return what its rows are made of."""

    @abstractmethod
    def read(self, workspace: Workspace) -> DataFrame:
        """Return its rows."""

    def stored(self, workspace: Workspace) -> tuple[StoredRelation, Partition]:
        """Return the relation, and the partition of it, that rows can be written to.

        Raises:
            SpecError: This dataset can only be read.
        """
        del workspace
        raise SpecError.of(
            f"a dataset of kind {self.kind!r} can't be written",
            remedy="Write to one of kind file or relation.",
        )


class RelationLike(Dataset):
    """A dataset that is a relation, or a partition of it."""

    @abstractmethod
    def source(self, workspace: Workspace) -> Relation:
        """Return the relation."""

    def chosen(self) -> Partition:
        """Return the partition that is meant; an empty one for the whole."""
        return {}

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the relation's storage, or the partition's."""
        return self.source(workspace).resources(workspace, self.chosen())

    def read(self, workspace: Workspace) -> DataFrame:
        """Return the relation's rows, or the partition's."""
        chosen = self.chosen()
        return self.source(workspace).read(workspace, [chosen] if chosen else [])

    def stored(self, workspace: Workspace) -> tuple[StoredRelation, Partition]:
        """Return the relation and the partition."""
        source = self.source(workspace)
        if not isinstance(source, StoredRelation):
            return super().stored(workspace)
        return source, canonical_partition(source.partitions, self.chosen())
