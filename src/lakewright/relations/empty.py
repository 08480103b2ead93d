"""The `empty` relation: has no rows and discards what is written to it."""

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
    """Has the declared columns and no rows; written rows are computed and discarded."""

    keeps_past: ClassVar[bool] = True

    modes: ClassVar[frozenset[OutputMode]] = frozenset(OutputMode)

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return nothing, because there is no storage."""
        del workspace, partition
        return frozenset()

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return that it exists and is empty."""
        del workspace, partition
        return Observation(f"empty:{self.name}", exists=Answer.YES, filled=Answer.NO)

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return a frame with the declared columns and no rows."""
        del partitions
        return frame_of_records(workspace.spark, self.declared(workspace) or (), [])

    def version(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> str | None:
        """Return a constant, because the content never changes."""
        del workspace, partitions
        return ""

    def create(self, workspace: Workspace) -> None:
        """Do nothing, because it always exists."""

    def migrate(self, workspace: Workspace, *, allow_data_loss: bool) -> None:
        """Do nothing, because it contains nothing."""

    def destroy(self, workspace: Workspace) -> None:
        """Do nothing, because there is nothing to remove."""

    def truncate(self, workspace: Workspace, partition: Partition | None = None) -> None:
        """Do nothing, because it is always empty."""

    def write(
        self, workspace: Workspace, frame: DataFrame, *, partition: Partition, mode: OutputMode
    ) -> WriteSummary:
        """Compute, count and discard the rows."""
        from pyspark.sql import Observation as Observed
        from pyspark.sql import functions

        del workspace, partition, mode
        observed = Observed()
        frame.observe(observed, functions.count(functions.lit(1)).alias("rows")).write.format("noop").mode(
            "overwrite"
        ).save()
        return WriteSummary(int(observed.get["rows"]))
