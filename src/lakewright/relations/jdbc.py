"""The base of relations in databases."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.connections.connection import ConnectionReference
from lakewright.connections.database import DatabaseTable, TableName
from lakewright.connections.dialect import Dialect
from lakewright.connections.jdbc import JdbcConnection, jdbc_connection, named_connection
from lakewright.errors import LakewrightError, SpecError
from lakewright.lake.damaged_log import failed_observation
from lakewright.lake.partition import Partition
from lakewright.plan.observation import Answer, Observation, TableChange
from lakewright.plan.resource import Resource
from lakewright.relations.migrated import MigratedView
from lakewright.relations.migration import MigrationStrategy
from lakewright.relations.query import QueryRelation
from lakewright.relations.relation import Relation
from lakewright.spec.models.base import Reference, TextMap
from lakewright.workspace.sql_tables import database_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["InDatabase", "JdbcQueryRelation", "JdbcViewRelation"]


_POSTGRES_SCHEMA = "public"


class InDatabase(Relation):
    """A relation in a database."""

    connection: ConnectionReference = Declared(
        description="Name of the connection, or the connection itself."
    )
    properties: TextMap = Declared(
        default_factory=dict,
        description="Options of Spark's JDBC reader and writer; they override the connection's properties.",
    )

    def references(self) -> Iterable[Reference]:
        """Return the references of the schema, and the connection."""
        return [*super().references(), *named_connection(self.connection)]

    def connected(self, workspace: Workspace) -> JdbcConnection:
        """Return the connection.

        Raises:
            SpecError: There is no connection of this name, or it has another kind.
        """
        return jdbc_connection(workspace, self.connection, self.label)

    def dialect(self, workspace: Workspace) -> Dialect:
        """Return the database."""
        return self.connected(workspace).open(workspace.lake, self.properties)

    def options(self, workspace: Workspace) -> dict[str, str]:
        """Return the options of Spark's JDBC reader and writer."""
        return self.connected(workspace).options(self.properties)

    def resource(
        self, workspace: Workspace, table: TableName, partition: Mapping[str, str] | None = None
    ) -> Resource:
        """Return a table of the database, or one of its partitions."""
        connection = self.connected(workspace)
        schema = table.schema or (_POSTGRES_SCHEMA if connection.is_postgres else None)
        return Resource.jdbc(f"{connection.place}/{TableName(table.name, schema)}", partition)

    def read_by(self, workspace: Workspace, sql: str) -> frozenset[Resource]:
        """Return the tables of the database that a query in its own SQL reads."""
        fold = str.lower if self.connected(workspace).is_postgres else str
        names = [name[-2:] for name in database_tables(sql, fold)]
        tables = (TableName(name[-1], name[0] if len(name) > 1 else None) for name in names)
        return frozenset(self.resource(workspace, table) for table in tables)

    def loaded(self, workspace: Workspace, **option: str) -> DataFrame:
        """Return the rows of a table (`dbtable`) or a query (`query`)."""
        return workspace.spark.read.format("jdbc").options(**self.options(workspace), **option).load()


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


class JdbcViewRelation(QueryRelation, InDatabase, MigratedView):
    """A view in a PostgreSQL database, with a query in the database's own SQL.

    The view's comment contains a digest of the query, which shows whether the query changed.
    """

    database: str | None = Declared(default=None, description="Schema that contains the view.")
    view: str = Declared(description="Name of the view.")

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
            return failed_observation(str(subject), error)
        if found is None:
            return Observation(str(subject), exists=Answer.NO, filled=Answer.NO)
        changes = self._changes(workspace, found)
        refusal = self.refused(workspace, self.view_name, changes)
        return Observation(
            str(subject),
            exists=Answer.YES,
            changes=self.planned(workspace, changes),
            refusal=None if refusal is None else refusal.as_fault(),
        )

    def _changes(self, workspace: Workspace, found: DatabaseTable) -> tuple[TableChange, ...]:
        is_same = found.comment == self._comment(workspace)
        return self.view_changes(None if is_same else "replace the view's query", is_view=found.is_view)

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
        changes = () if found is None else self._changes(workspace, found)
        if not changes or self.strategy(workspace) is MigrationStrategy.NEVER:
            return
        if refusal := self.refused(workspace, self.view_name, changes):
            raise refusal
        self._replace(workspace, found)

    def destroy(self, workspace: Workspace) -> None:
        """Remove the view; the tables it reads stay."""
        dialect = self.dialect(workspace)
        if dialect.find(self.view_name) is not None:
            dialect.database.run([dialect.drop(self.view_name, is_view=True)])
