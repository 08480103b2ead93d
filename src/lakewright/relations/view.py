"""The `view` relation: a query that the catalog keeps under a name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.errors import MigrationError
from lakewright.lake.catalog import CatalogEntry, find_entry, full_name, quoted, run_statement
from lakewright.lake.delta_log import is_uncommitted
from lakewright.lake.files import local_path
from lakewright.lake.partition import Partition, partition_condition
from lakewright.lake.table import ensure_database
from lakewright.plan.observation import Answer, Observation, TableChange
from lakewright.plan.resource import Resource
from lakewright.relations.migration import (
    MigrationStrategy,
    MigrationStrategyText,
    Tolerated,
    default_strategy,
)
from lakewright.relations.relation import ManagedRelation
from lakewright.spec.models.base import Reference
from lakewright.spec.models.places import Address
from lakewright.transform.sql import text_sql
from lakewright.workspace.query import table_resources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["ViewRelation", "WaitingView"]


@dataclass(frozen=True, slots=True)
class WaitingView(Observation):
    """A view that can't be made yet.

    Attributes:
        inputs: What it reads that isn't there.
    """

    inputs: tuple[str, ...] = ()


class ViewRelation(ManagedRelation):
    """A view of the catalog; rows are computed whenever it is read.

    In `sql` every table is one of the catalog. With `mapping` the query is that of a mapping: of kind sql,
    filter, alias or relation, over tables of the catalog and Delta tables.
    """

    database: str | None = Declared(default=None, description="Database of the catalog.")
    view: str = Declared(description="Name of the view.")
    sql: str | None = Declared(default=None, description="The query.")
    file: str | None = Declared(default=None, description="File with the query, below the project's folder.")
    mapping: str | None = Declared(default=None, description="Mapping that the query is made of.")
    migration_strategy: MigrationStrategyText | None = Declared(
        default=None, description="NEVER or FAIL keep a view that differs; all others replace it."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if sum(each is not None for each in (self.sql, self.file, self.mapping)) != 1:
            raise ValueError("a view has one of `sql`, `file` and `mapping`")
        return self

    def references(self) -> Iterable[Reference]:
        """Return the mapping."""
        named = [] if self.mapping is None else [Reference("mapping", self.mapping, ("mapping",))]
        return [*super().references(), *named]

    def qualified(self) -> str:
        """Return the view's name with its database."""
        return full_name(self.database, self.view)

    def query(self, workspace: Workspace) -> str:
        """Return the query, from wherever it stands."""
        if self.mapping is not None:
            return workspace.sql_text(self.mapping)
        return self.sql if self.sql is not None else workspace.read_file(self.file or "")

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return the view's name as SQL."""
        del workspace
        return quoted(self.qualified())

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the view, and to read it also what it is made of."""
        del workspace, partition
        return frozenset({Resource.table(self.qualified())})

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return what the query reads."""
        if self.mapping is not None:
            return super().requires(workspace) | workspace.required(self.mapping)
        return super().requires(workspace) | table_resources(self.query(workspace))

    def missing(self, workspace: Workspace) -> tuple[str, ...]:
        """Return what the query reads that isn't there; whether something is elsewhere isn't asked."""
        found = sorted(self.requires(workspace), key=str)
        return tuple(each.name for each in found if _is_missing(workspace, each))

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return whether the view is there and has the declared query."""
        del partition
        (subject,) = self.resources(workspace)
        found = find_entry(workspace.lake, self.qualified())
        if found is None:
            inputs = self.missing(workspace)
            return WaitingView(str(subject), exists=Answer.NO, filled=Answer.NO, inputs=inputs)
        strategy = self.migration_strategy or default_strategy(workspace.project.config)
        changes = self._changes(workspace, found)
        if strategy is MigrationStrategy.NEVER:
            changes = tuple(Tolerated(change.description) for change in changes)
        return Observation(str(subject), exists=Answer.YES, changes=changes)

    def _changes(self, workspace: Workspace, found: CatalogEntry) -> tuple[TableChange, ...]:
        if found.view_text is None:
            return (TableChange("replace the table by a view", "the table"),)
        is_same = _squeezed(found.view_text) == _squeezed(self.query(workspace))
        return () if is_same else (TableChange("replace the view's query"),)

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the query."""
        frame = workspace.spark.table(quoted(self.qualified()))
        return frame.where(partition_condition(self.partitions, partitions)) if partitions else frame

    def create(self, workspace: Workspace) -> None:
        """Make the view."""
        address = Address(name=self.qualified())
        ensure_database(workspace.lake.isolated(), address)
        comment = f" COMMENT {text_sql(self.description)}" if self.description else ""
        run_statement(
            workspace.lake.spark, f"CREATE OR REPLACE VIEW {address.sql}{comment} AS {self.query(workspace)}"
        )

    def migrate(self, workspace: Workspace, *, allow_data_loss: bool) -> None:
        """Replace the view where its query differs.

        Raises:
            MigrationError: A table is there in its place, or the strategy is FAIL.
        """
        del allow_data_loss
        found = find_entry(workspace.lake, self.qualified())
        changes = self.observe(workspace).changes
        strategy = self.migration_strategy or default_strategy(workspace.project.config)
        if not changes or found is None or strategy is MigrationStrategy.NEVER:
            return
        if found.view_text is None or strategy is MigrationStrategy.FAIL:
            raise MigrationError(
                f"{self.label}: {self.qualified()} isn't as declared: {changes[0].description}",
                remedy="Remove what is there, or give it another migrationStrategy: REPLACE.",
            )
        self.create(workspace)

    def destroy(self, workspace: Workspace) -> None:
        """Remove the view; what it reads stays."""
        if find_entry(workspace.lake, self.qualified()) is not None:
            run_statement(workspace.lake.spark, f"DROP VIEW IF EXISTS {quoted(self.qualified())}")


def _squeezed(query: str) -> str:
    return " ".join(query.split()).rstrip(" ;")


def _is_missing(workspace: Workspace, resource: Resource) -> bool:
    if resource.category == "table":
        return find_entry(workspace.lake, resource.name) is None
    path = local_path(resource.name) if resource.category == "file" else None
    if path is None or "*" in resource.name:
        return False
    return not path.exists() or is_uncommitted(path)
