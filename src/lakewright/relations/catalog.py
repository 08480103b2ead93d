"""Relations with names or queries in the catalog: `view`, `hiveQuery` and `provided`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field as Declared

from lakewright.errors import Fault, SpecError, TargetError
from lakewright.lake.delta_log import is_uncommitted
from lakewright.lake.partition import Partition, canonical_partition
from lakewright.lake.paths import local_path
from lakewright.lake.spark_errors import analysis_error
from lakewright.lake.table import (
    CatalogEntry,
    MigrationStep,
    ensure_database,
    find_entry,
    full_name,
    quoted,
    refresh_tables,
    run_statement,
)
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.resource import Resource
from lakewright.relations.migration import REPLACES_TABLE, MigratedView, Tolerated, made_again
from lakewright.relations.relation import Relation
from lakewright.schema.sql import text_sql
from lakewright.spark.engine import analyzed
from lakewright.spec.models.base import Reference
from lakewright.spec.models.places import Address
from lakewright.spec.models.text_marks import SqlText
from lakewright.workspace.query import QueryText, table_resources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


class InCatalog(Relation):
    """A relation that the catalog knows by a name."""

    @property
    @abstractmethod
    def qualified(self) -> str:
        """The name with its database."""

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return the name in SQL."""
        return quoted(self.qualified)

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the table or view, or one of its partitions."""
        values = canonical_partition(self.partitions, partition or {})
        return frozenset({Resource.table(self.qualified, values)})

    def is_there(self, workspace: Workspace) -> bool:
        """Return whether the catalog has it."""
        return find_entry(workspace.lake, self.qualified) is not None

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the table or view.

        Raises:
            TargetError: It does not exist.
        """
        # The session may have cached which files the tables of a query had.
        refresh_tables(workspace.spark, [self.qualified])
        try:
            frame = analyzed(workspace.spark.table(quoted(self.qualified)))
        except analysis_error() as error:
            if workspace.spark.catalog.tableExists(quoted(self.qualified)):
                raise
            raise TargetError(
                f"{self.label}: there is no {self.qualified} in the catalog",
                remedy="Run the phase that creates it.",
            ) from error
        return self.within(frame, partitions)


class HiveQueryRelation(QueryText, Relation):
    """The rows of a query over tables of the catalog; read-only."""

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return the query in parentheses, which stands for its rows in another query."""
        return f"({self.query(workspace)})"

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the tables that the query reads."""
        return table_resources(self.query(workspace))

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the query, with the declared columns if there are any."""
        return self.selected(workspace, workspace.spark.sql(self.query(workspace)), partitions)


class ProvidedRelation(InCatalog):
    """Reads a table of the catalog, or a global temporary view, that the project does not manage.

    A Python program gives a project rows with `frame.createOrReplaceGlobalTempView("orders")`, as
    `global_temp.orders`.
    """

    table: str = Declared(description="Name, including its database.")

    @property
    def qualified(self) -> str:
        """The name with its database."""
        return self.table

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return whether the table exists."""
        (subject,) = self.resources(workspace, partition)
        return Observation(str(subject), exists=Answer.of(self.is_there(workspace)))

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the table's rows."""
        return self.within(workspace.spark.table(quoted(self.table)), partitions)


@dataclass(frozen=True, slots=True)
class WaitingView(Observation):
    """A view that cannot be created, or made anew, before what it reads is there.

    Attributes:
        inputs: The missing resources that it reads.
    """

    inputs: tuple[str, ...] = ()


class ViewRelation(QueryText, InCatalog, MigratedView):
    """A view in the catalog; its rows are computed when it is read.

    With `sql`, every table is a catalog table. A `mapping` is of kind sql, filter, alias or relation, over
    catalog and Delta tables.
    """

    query_keys: ClassVar[tuple[str, ...]] = ("sql", "file", "mapping")

    # What it reads may have other columns since; the view keeps those that its query had when it was made.
    is_made_anew: ClassVar[bool] = True

    database: str | None = Declared(default=None, description="Database in the catalog.")
    view: str = Declared(description="Name of the view.")
    sql: Annotated[str | None, SqlText.QUERY] = Declared(default=None, description="The query.")
    mapping: str | None = Declared(default=None, description="Mapping that defines the query.")

    def references(self) -> Iterable[Reference]:
        """Return the mapping."""
        named = [] if self.mapping is None else [Reference("mapping", self.mapping, ("mapping",))]
        return [*super().references(), *named]

    @property
    def qualified(self) -> str:
        """The name with its database."""
        return full_name(self.database, self.view)

    def query(self, workspace: Workspace) -> str:
        """Return the text of the query."""
        return super().query(workspace) if self.mapping is None else workspace.sql_text(self.mapping)

    def computed_from(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that the query reads."""
        if self.mapping is not None:
            return workspace.required(self.mapping)
        return table_resources(self.query(workspace))

    def missing(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the missing resources that the query reads; only resources of the lake are checked."""
        found = sorted(self.requires(workspace), key=str)
        return tuple(each.name for each in found if _is_missing(workspace, each))

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return whether the view exists with the declared query, and which of its inputs are missing."""
        seen = super().observe(workspace, partition)
        is_absent = seen.exists is Answer.NO
        changes = [each for each in seen.changes if not isinstance(each, Tolerated)]
        is_made = is_absent or (changes and seen.refusal is None)
        return WaitingView(
            seen.subject,
            exists=seen.exists,
            filled=seen.filled,
            changes=seen.changes,
            refusal=self._query_fault(workspace) if is_absent else seen.refusal,
            warning=seen.warning,
            error=seen.error,
            inputs=self.missing(workspace) if is_made else (),
        )

    def _query_fault(self, workspace: Workspace) -> Fault | None:
        """Return why there is no query for the view; None if there is one."""
        try:
            self.query(workspace)
        except SpecError as error:
            return error.as_fault()
        return None

    def found(self, workspace: Workspace) -> CatalogEntry | None:
        """Return the view, or the table in its place, or None if there is neither."""
        return find_entry(workspace.lake, self.qualified)

    def steps(self, workspace: Workspace, found: CatalogEntry) -> tuple[MigrationStep, ...]:
        """Return what makes the view the declared one."""
        if found.view_text is None:
            return (REPLACES_TABLE,)
        if _squeezed(found.view_text) != _squeezed(self.query(workspace)):
            return (made_again("replace the view's query"),)
        return (
            () if found.defect is None else (made_again(f"make the view anew: {found.defect.rstrip('.')}"),)
        )

    def create(self, workspace: Workspace) -> None:
        """Create the view, in place of one that is there."""
        address, query = Address(name=self.qualified), self.query(workspace)
        ensure_database(workspace.lake, address)
        comment = f" COMMENT {text_sql(self.description)}" if self.description else ""
        run_statement(workspace.lake, f"CREATE OR REPLACE VIEW {address.sql}{comment} AS {query}")

    def destroy(self, workspace: Workspace) -> None:
        """Remove the view; the tables it reads stay."""
        if self.is_there(workspace):
            run_statement(workspace.lake, f"DROP VIEW IF EXISTS {quoted(self.qualified)}")


def _squeezed(query: str) -> str:
    return " ".join(query.split()).rstrip(" ;")


def _is_missing(workspace: Workspace, resource: Resource) -> bool:
    if resource.category == "table":
        return find_entry(workspace.lake, resource.name) is None
    path = local_path(resource.name) if resource.category == "file" else None
    if path is None or "*" in resource.name:
        return False
    return not path.exists() or is_uncommitted(path)
