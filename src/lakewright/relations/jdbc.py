"""The base of relations in databases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.connections.connection import ConnectionReference
from lakewright.connections.database import TableName
from lakewright.connections.dialect import Dialect
from lakewright.connections.jdbc import JdbcConnection, jdbc_connection, named_connection
from lakewright.plan.resource import Resource
from lakewright.relations.relation import Relation
from lakewright.spec.models.base import Reference, TextMap
from lakewright.workspace.sql_tables import database_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["InDatabase"]

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
