"""The `provided` relation: a table or view that another program created in the session or catalog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.lake.catalog import find_entry, quoted
from lakewright.lake.partition import Partition, partition_condition
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.resource import Resource
from lakewright.relations.relation import Relation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["ProvidedRelation"]


class ProvidedRelation(Relation):
    """Reads a table of the catalog, or a global temporary view, that the project does not manage.

    A Python program gives a project its own rows with `frame.createOrReplaceGlobalTempView("orders")`; the
    table is then `global_temp.orders`. Other temporary views of the program are not visible.
    """

    table: str = Declared(description="Name, including its database.")

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return the name of the table in SQL."""
        del workspace
        return quoted(self.table)

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the table."""
        del workspace, partition
        return frozenset({Resource.table(self.table)})

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return whether the table exists."""
        (subject,) = self.resources(workspace, partition)
        return Observation(str(subject), exists=Answer.of(find_entry(workspace.lake, self.table) is not None))

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the table's rows."""
        frame = workspace.spark.table(quoted(self.table))
        return frame.where(partition_condition(self.partitions, partitions)) if partitions else frame
