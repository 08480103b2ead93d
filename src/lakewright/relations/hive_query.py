"""The `hiveQuery` relation: the rows of a query over the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakewright.lake.partition import Partition
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.resource import Resource
from lakewright.relations.query import QueryRelation
from lakewright.workspace.query import table_resources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["HiveQueryRelation"]


class HiveQueryRelation(QueryRelation):
    """The rows of a query over tables of the catalog; read-only. Nothing of it is kept in the catalog."""

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return the query in parentheses, which stands for its rows in another query."""
        return f"({self.query(workspace)})"

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the tables that the query reads."""
        del partition
        return table_resources(self.query(workspace))

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return that it exists, without running the query."""
        del workspace, partition
        return Observation(f"hive query:{self.name}", exists=Answer.YES)

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the query, with the declared columns if there are any."""
        return self.selected(workspace, workspace.spark.sql(self.query(workspace)), partitions)
