"""The base classes of datasets: rows of a mapping, a relation, files or the project itself."""

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
    """Rows that a target reads or writes."""

    @abstractmethod
    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that the rows are read from."""

    @abstractmethod
    def read(self, workspace: Workspace) -> DataFrame:
        """Return the rows."""

    def stored(self, workspace: Workspace) -> tuple[StoredRelation, Partition]:
        """Return the relation and the partition to write rows to.

        Raises:
            SpecError: The dataset can only be read.
        """
        raise SpecError.of(
            f"a dataset of kind {self.kind!r} cannot be written",
            remedy="Write to a dataset of kind file or relation.",
        )


class RelationLike(Dataset):
    """A dataset that reads and writes a relation, or a partition of it."""

    @abstractmethod
    def source(self, workspace: Workspace) -> Relation:
        """Return the relation."""

    def chosen(self) -> Partition:
        """Return the partition; an empty one stands for the whole relation."""
        return {}

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources of the relation, or of the partition."""
        return self.source(workspace).resources(workspace, self.chosen())

    def read(self, workspace: Workspace) -> DataFrame:
        """Return the rows of the relation, or of the partition."""
        chosen = self.chosen()
        return self.source(workspace).read(workspace, [chosen] if chosen else [])

    def stored(self, workspace: Workspace) -> tuple[StoredRelation, Partition]:
        """Return the relation and the partition."""
        source = self.source(workspace)
        if not isinstance(source, StoredRelation):
            return super().stored(workspace)
        return source, canonical_partition(source.partitions, self.chosen())
