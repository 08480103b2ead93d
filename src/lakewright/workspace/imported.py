"""Relations of an imported project, read as that project declares them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.lake.partition import Partition
from lakewright.plan.resource import Resource
from lakewright.spec.kinds.types import Field, PartitionField

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Source, Workspace

__all__ = ["ImportedSource"]


@dataclass(frozen=True, slots=True)
class ImportedSource:
    """A relation that answers with the names and the folder of its own project.

    Attributes:
        source: The relation.
        home: The workspace of its project.
        project: The project's name.
    """

    source: Source
    home: Workspace
    project: str

    @property
    def name(self) -> str:
        """Its name with its project's."""
        return f"{self.project}/{self.source.name}"

    @property
    def partitions(self) -> tuple[PartitionField, ...]:
        """Its partition columns."""
        return self.source.partitions

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return what reading it requires."""
        del workspace
        return self.source.resources(self.home, partition)

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return its columns."""
        del workspace
        return self.source.fields(self.home)

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return its rows."""
        del workspace
        return self.source.read(self.home, partitions)

    def version(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> str | None:
        """Return a text that differs whenever its content does."""
        del workspace
        return self.source.version(self.home, partitions)

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return how a query names it."""
        del workspace
        return self.source.table_sql(self.home)
