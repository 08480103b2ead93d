"""The `empty` relation: no rows when read, and a place to throw rows away when written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from lakewright.lake.columns import frame_of_records
from lakewright.lake.partition import Partition
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.resource import Resource
from lakewright.relations.relation import OutputMode, StoredRelation, WriteSummary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["EmptyRelation"]


class EmptyRelation(StoredRelation):
    """Has the declared columns and never a row; what is written to it is computed and forgotten."""

    modes: ClassVar[frozenset[OutputMode]] = frozenset(OutputMode)

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return nothing: there is no storage."""
        del workspace, partition
        return frozenset()

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return that it is there and empty."""
        del workspace, partition
        return Observation(f"empty:{self.name}", exists=Answer.YES, filled=Answer.NO)

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return no rows of the declared columns."""
        del partitions
        return frame_of_records(workspace.spark, self.declared(workspace) or (), [])

    def version(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> str | None:
        """Return the same text always."""
        del workspace, partitions
        return ""

    def create(self, workspace: Workspace) -> None:
        """Do nothing: it is always there."""

    def migrate(self, workspace: Workspace, *, allow_data_loss: bool) -> None:
        """Do nothing: it holds nothing."""

    def destroy(self, workspace: Workspace) -> None:
        """Do nothing: there is nothing to remove."""

    def truncate(self, workspace: Workspace, partition: Partition | None = None) -> None:
        """Do nothing: it is always empty."""

    def write(
        self, workspace: Workspace, frame: DataFrame, *, partition: Partition, mode: OutputMode
    ) -> WriteSummary:
        """Compute the rows, count them and forget them."""
        from pyspark.sql import Observation as Observed
        from pyspark.sql import functions

        del workspace, partition, mode
        observed = Observed()
        frame.observe(observed, functions.count(functions.lit(1)).alias("rows")).write.format("noop").mode(
            "overwrite"
        ).save()
        return WriteSummary(int(observed.get["rows"]))
