"""The `view` relation: a named query in the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.errors import Fault, SpecError, TargetError
from lakewright.lake.catalog import CatalogEntry, find_entry, full_name, quoted, refresh_tables, run_statement
from lakewright.lake.delta_log import is_uncommitted
from lakewright.lake.partition import Partition
from lakewright.lake.paths import local_path
from lakewright.lake.spark_errors import analysis_error
from lakewright.lake.table import ensure_database
from lakewright.plan.observation import Answer, Observation, TableChange
from lakewright.plan.resource import Resource
from lakewright.relations.migrated import MigratedView
from lakewright.relations.migration import MigrationStrategy
from lakewright.schema.sql import text_sql
from lakewright.spec.models.base import Reference
from lakewright.spec.models.places import Address
from lakewright.spec.models.text_marks import FileText, SqlText
from lakewright.workspace.query import table_resources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["ViewRelation", "WaitingView"]


@dataclass(frozen=True, slots=True)
class WaitingView(Observation):
    """A view that cannot be created, or made anew, before what it reads is there.

    Attributes:
        inputs: The missing resources that it reads.
    """

    inputs: tuple[str, ...] = ()


class ViewRelation(MigratedView):
    """A view in the catalog; its rows are computed when it is read.

    With `sql`, every table is a catalog table. With `mapping`, the query is that of a mapping of kind sql,
    filter, alias or relation over catalog tables and Delta tables.
    """

    database: str | None = Declared(default=None, description="Database in the catalog.")
    view: str = Declared(description="Name of the view.")
    sql: Annotated[str | None, SqlText.QUERY] = Declared(default=None, description="The query.")
    file: Annotated[str | None, FileText.OF_PROJECT] = Declared(
        default=None, description="File with the query, relative to the project's folder."
    )
    mapping: str | None = Declared(default=None, description="Mapping that defines the query.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if sum(each is not None for each in (self.sql, self.file, self.mapping)) != 1:
            raise ValueError("a view needs exactly one of `sql`, `file` and `mapping`")
        return self

    def references(self) -> Iterable[Reference]:
        """Return the mapping."""
        named = [] if self.mapping is None else [Reference("mapping", self.mapping, ("mapping",))]
        return [*super().references(), *named]

    def qualified(self) -> str:
        """Return the name of the view with its database."""
        return full_name(self.database, self.view)

    def query(self, workspace: Workspace) -> str:
        """Return the text of the query."""
        if self.mapping is not None:
            return workspace.sql_text(self.mapping)
        return self.sql if self.sql is not None else workspace.read_file(self.file or "")

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return the name of the view in SQL."""
        del workspace
        return quoted(self.qualified())

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the view."""
        del workspace, partition
        return frozenset({Resource.table(self.qualified())})

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that the query reads."""
        return super().requires(workspace) | self.computed_from(workspace)

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
        """Return whether the view exists with the declared query."""
        del partition
        (subject,) = self.resources(workspace)
        found = find_entry(workspace.lake, self.qualified())
        if found is None:
            inputs, fault = self.missing(workspace), self._query_fault(workspace)
            return WaitingView(str(subject), exists=Answer.NO, filled=Answer.NO, inputs=inputs, refusal=fault)
        changes = self._changes(workspace, found)
        refusal = self.refused(workspace, self.qualified(), changes)
        fault = None if refusal is None else refusal.as_fault()
        is_made = changes and refusal is None and self.strategy(workspace) is not MigrationStrategy.NEVER
        changes = self.planned(workspace, changes)
        if is_made and found.defect is not None and (inputs := self.missing(workspace)):
            return WaitingView(str(subject), exists=Answer.YES, changes=changes, inputs=inputs)
        return Observation(str(subject), exists=Answer.YES, changes=changes, refusal=fault)

    def _query_fault(self, workspace: Workspace) -> Fault | None:
        """Return why there is no query for the view; None if there is one."""
        try:
            self.query(workspace)
        except SpecError as error:
            return error.as_fault()
        return None

    def _changes(self, workspace: Workspace, found: CatalogEntry) -> tuple[TableChange, ...]:
        # The view keeps the columns that its query had when it was made.
        other = None if found.defect is None else f"make the view anew: {found.defect.rstrip('.')}"
        if _squeezed(found.view_text or "") != _squeezed(self.query(workspace)):
            other = "replace the view's query"
        return self.view_changes(other, is_view=found.view_text is not None)

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the query.

        Raises:
            TargetError: The view does not exist.
        """
        # The session may have cached which files the tables of the query had.
        refresh_tables(workspace.spark, [self.qualified()])
        try:
            frame = workspace.spark.table(quoted(self.qualified()))
        except analysis_error() as error:
            if workspace.spark.catalog.tableExists(quoted(self.qualified())):
                raise
            raise TargetError(
                f"{self.label}: there is no view {self.qualified()}", remedy="Run the phase that creates it."
            ) from error
        return self.within(frame, partitions)

    def create(self, workspace: Workspace) -> None:
        """Create the view."""
        address, query = Address(name=self.qualified()), self.query(workspace)
        ensure_database(workspace.lake, address)
        comment = f" COMMENT {text_sql(self.description)}" if self.description else ""
        run_statement(workspace.lake, f"CREATE OR REPLACE VIEW {address.sql}{comment} AS {query}")

    def migrate(self, workspace: Workspace, *, allow_data_loss: bool) -> None:
        """Make the view anew: of the same query, too, as the columns of what it reads may have changed.

        Raises:
            MigrationError: There is a table in its place, or the strategy is FAIL.
        """
        del allow_data_loss
        found = find_entry(workspace.lake, self.qualified())
        if found is None or self.strategy(workspace) is MigrationStrategy.NEVER:
            return
        if refusal := self.refused(workspace, self.qualified(), self._changes(workspace, found)):
            raise refusal
        self.create(workspace)

    def destroy(self, workspace: Workspace) -> None:
        """Remove the view; the tables it reads stay."""
        if find_entry(workspace.lake, self.qualified()) is not None:
            run_statement(workspace.lake, f"DROP VIEW IF EXISTS {quoted(self.qualified())}")


def _squeezed(query: str) -> str:
    return " ".join(query.split()).rstrip(" ;")


def _is_missing(workspace: Workspace, resource: Resource) -> bool:
    if resource.category == "table":
        return find_entry(workspace.lake, resource.name) is None
    path = local_path(resource.name) if resource.category == "file" else None
    if path is None or "*" in resource.name:
        return False
    return not path.exists() or is_uncommitted(path)
