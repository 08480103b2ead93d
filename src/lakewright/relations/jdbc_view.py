"""The `jdbcView` relation: a view that is kept in a database."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.connections.database import DatabaseTable, TableName
from lakewright.errors import LakewrightError, MigrationError, SpecError
from lakewright.lake.partition import Partition
from lakewright.plan.observation import Answer, Observation, TableChange
from lakewright.plan.resource import Resource
from lakewright.relations.jdbc import InDatabase
from lakewright.relations.migration import (
    MigrationPolicyText,
    MigrationStrategy,
    MigrationStrategyText,
    Tolerated,
    default_strategy,
)
from lakewright.relations.query import QueryRelation
from lakewright.relations.relation import ManagedRelation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["JdbcViewRelation"]


class JdbcViewRelation(QueryRelation, InDatabase, ManagedRelation):
    """A view in a PostgreSQL database, with a query in the database's own SQL.

    The view's comment contains a digest of the query, which shows whether the query changed.
    """

    database: str | None = Declared(default=None, description="Schema that contains the view.")
    view: str = Declared(description="Name of the view.")
    migration_policy: MigrationPolicyText | None = Declared(
        default=None,
        description="Accepted for Flowman's projects: a view differs if its query does, in both policies.",
    )
    migration_strategy: MigrationStrategyText | None = Declared(
        default=None, description="NEVER and FAIL keep a view that differs; all others replace it."
    )

    @property
    def view_name(self) -> TableName:
        """The name of the view in its database."""
        return TableName(self.view, self.database)

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the view."""
        del partition
        return frozenset({self.resource(workspace, self.view_name)})

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that must exist before it can be created."""
        return super().requires(workspace) | self.computed_from(workspace)

    def computed_from(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the tables that the query reads."""
        return self.read_by(workspace, self.query(workspace))

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return whether the view exists with the declared query."""
        del partition
        (subject,) = self.resources(workspace)
        try:
            found = self.dialect(workspace).find(self.view_name)
        except LakewrightError as error:
            return Observation(str(subject), error=error.message)
        if found is None:
            return Observation(str(subject), exists=Answer.NO, filled=Answer.NO)
        changes = self._changes(workspace, found)
        strategy = self._strategy(workspace)
        if strategy is MigrationStrategy.NEVER:
            changes = tuple(Tolerated(change.description) for change in changes)
        refusal = self._refusal(found, changes, strategy)
        fault = None if refusal is None else refusal.as_fault()
        return Observation(str(subject), exists=Answer.YES, changes=changes, refusal=fault)

    def _refusal(
        self, found: DatabaseTable, changes: Sequence[TableChange], strategy: MigrationStrategy
    ) -> MigrationError | None:
        is_table = not found.is_view and strategy is not MigrationStrategy.NEVER
        if not changes or not (is_table or strategy is MigrationStrategy.FAIL):
            return None
        return MigrationError(
            f"{self.label}: {self.view_name} differs from its declaration: {changes[0].description}",
            remedy="Remove what is there, or set migrationStrategy: REPLACE.",
        )

    def _strategy(self, workspace: Workspace) -> MigrationStrategy:
        return self.migration_strategy or default_strategy(workspace.project.config)

    def _changes(self, workspace: Workspace, found: DatabaseTable) -> tuple[TableChange, ...]:
        if not found.is_view:
            return (TableChange("replace the table with a view", "the table"),)
        return () if found.comment == self._comment(workspace) else (TableChange("replace the view's query"),)

    def _comment(self, workspace: Workspace) -> str:
        digest = hashlib.sha256(" ".join(self.query(workspace).split()).encode()).hexdigest()[:12]
        return f"{self.description or ''} [query {digest}]".strip()

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the view, with the declared columns if there are any."""
        frame = self.loaded(workspace, dbtable=self.dialect(workspace).table(self.view_name))
        return self.selected(workspace, frame, partitions)

    def create(self, workspace: Workspace) -> None:
        """Create the view."""
        self._replace(workspace, None)

    def _replace(self, workspace: Workspace, present: DatabaseTable | None) -> None:
        if not self.connected(workspace).is_postgres:
            raise SpecError.of(
                f"{self.label}: views can only be created in PostgreSQL",
                remedy="Create it in the database, and read it with a jdbcTable relation.",
            )
        dialect = self.dialect(workspace)
        view = dialect.table(self.view_name)
        # CREATE OR REPLACE would keep the view's columns, which may have changed.
        drop = [] if present is None else [dialect.drop(self.view_name, is_view=True)]
        comment = f"COMMENT ON VIEW {view} IS {dialect.text(self._comment(workspace))}"
        make = f"CREATE VIEW {view} AS {self.query(workspace)}"
        dialect.database.run([*dialect.make_schema(self.view_name), *drop, make, comment])

    def migrate(self, workspace: Workspace, *, allow_data_loss: bool) -> None:
        """Replace the view if its query differs.

        Raises:
            MigrationError: There is a table in its place, or the strategy is FAIL.
        """
        del allow_data_loss
        found = self.dialect(workspace).find(self.view_name)
        strategy = self._strategy(workspace)
        changes = () if found is None else self._changes(workspace, found)
        if not changes or found is None or strategy is MigrationStrategy.NEVER:
            return
        if (refusal := self._refusal(found, changes, strategy)) is not None:
            raise refusal
        self._replace(workspace, found)

    def destroy(self, workspace: Workspace) -> None:
        """Remove the view; the tables it reads stay."""
        dialect = self.dialect(workspace)
        if dialect.find(self.view_name) is not None:
            dialect.database.run([dialect.drop(self.view_name, is_view=True)])
