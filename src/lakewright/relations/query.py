"""The base of relations with a query, in the SQL of the place where it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.lake.catalog import find_entry, quoted
from lakewright.lake.columns import conform
from lakewright.lake.partition import Partition
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.resource import Resource
from lakewright.relations.relation import Relation
from lakewright.spec.models.text_marks import FileText
from lakewright.workspace.query import table_resources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["HiveQueryRelation", "ProvidedRelation", "QueryRelation"]


class QueryRelation(Relation):
    """A relation with a query as text, or in a file."""

    sql: str | None = Declared(default=None, description="The query.")
    file: Annotated[str | None, FileText.OF_PROJECT] = Declared(
        default=None, description="File with the query, relative to the project's folder."
    )

    @model_validator(mode="after")
    def _check_query(self) -> Self:
        if (self.sql is None) == (self.file is None):
            raise ValueError(f"a {self.kind} relation needs either `sql` or `file`")
        return self

    def query(self, workspace: Workspace) -> str:
        """Return the text of the query, without a semicolon at its end."""
        text = self.sql if self.sql is not None else workspace.read_file(self.file or "")
        return text.strip().rstrip(";")

    def selected(
        self, workspace: Workspace, frame: DataFrame, partitions: Sequence[Partition] = ()
    ) -> DataFrame:
        """Return the rows of some partitions, with the declared columns if there are any."""
        fields = self.declared(workspace)
        frame = frame if fields is None else conform(frame, fields)
        return self.within(frame, partitions)


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
        return self.within(frame, partitions)
