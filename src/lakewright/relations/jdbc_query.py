"""The `jdbcQuery` relation: the rows of a query in a database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakewright.lake.partition import Partition
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.resource import Resource
from lakewright.relations.jdbc import InDatabase
from lakewright.relations.query import QueryRelation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["JdbcQueryRelation"]


class JdbcQueryRelation(QueryRelation, InDatabase):
    """The rows of a query in the database's own SQL; read-only."""

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the tables that the query reads."""
        del partition
        return self.read_by(workspace, self.query(workspace))

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return that it exists, without running the query."""
        del workspace, partition
        return Observation(f"jdbc query:{self.name}", exists=Answer.YES)

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the query, with the declared columns if there are any."""
        return self.selected(workspace, self.loaded(workspace, query=self.query(workspace)), partitions)
