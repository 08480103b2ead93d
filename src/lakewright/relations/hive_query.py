"""The `hiveQuery` relation: the rows of a query over the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.lake.columns import conform
from lakewright.lake.partition import Partition, partition_condition
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.resource import Resource
from lakewright.relations.relation import Relation
from lakewright.workspace.query import table_resources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["HiveQueryRelation"]


class HiveQueryRelation(Relation):
    """The rows of a query over tables of the catalog; read-only. Nothing of it is kept in the catalog."""

    sql: str | None = Declared(default=None, description="The query.")
    file: str | None = Declared(
        default=None, description="File with the query, relative to the project's folder."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.sql is None) == (self.file is None):
            raise ValueError("a hiveQuery relation needs either `sql` or `file`")
        return self

    def query(self, workspace: Workspace) -> str:
        """Return the text of the query."""
        return self.sql if self.sql is not None else workspace.read_file(self.file or "")

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return the query in parentheses, which stands for its rows in another query."""
        return f"({self.query(workspace).strip().rstrip(';')})"

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
        frame = workspace.spark.sql(self.query(workspace))
        fields = self.declared(workspace)
        frame = frame if fields is None else conform(frame, fields)
        return frame.where(partition_condition(self.partitions, partitions)) if partitions else frame
