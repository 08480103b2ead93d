"""Relations in databases: `jdbcTable`, `jdbcView` and `jdbcQuery`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.connections.connection import ConnectionReference
from lakewright.connections.database import DatabaseTable, Dialect, Index, TableName
from lakewright.connections.jdbc import JdbcConnection, jdbc_connection, named_connection
from lakewright.errors import SpecError
from lakewright.lake.columns import conform, fields_of
from lakewright.lake.partition import Partition, canonical_partition, typed_columns
from lakewright.lake.table import MigrationStep
from lakewright.plan.resource import Resource
from lakewright.relations.jdbc_statements import StagedRows, find_table_steps, staging_name
from lakewright.relations.migration import REPLACES_TABLE, MigratedTable, MigratedView, made_again
from lakewright.relations.relation import (
    OutputMode,
    QueryRelation,
    Relation,
    WriteSummary,
    left_out,
    undeclared_columns,
)
from lakewright.spec.models.base import Listed, Model, Reference, TextMap, Texts, from_text
from lakewright.spec.models.fields import Field
from lakewright.workspace.sql_tables import database_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["JdbcQueryRelation", "JdbcTableRelation", "JdbcViewRelation", "SqlServerRelation"]

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
        return self.read_by(workspace, self.query(workspace))

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
        return frozenset({self.resource(workspace, self.view_name)})

    def computed_from(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the tables that the query reads."""
        return self.read_by(workspace, self.query(workspace))

    def found(self, workspace: Workspace) -> DatabaseTable | None:
        """Return the view, or the table in its place, or None if there is neither."""
        return self.dialect(workspace).find(self.view_name)

    def steps(self, workspace: Workspace, found: DatabaseTable) -> tuple[MigrationStep, ...]:
        """Return what makes the view the declared one."""
        if not found.is_view:
            return (REPLACES_TABLE,)
        is_same = found.comment == self._comment(workspace)
        return () if is_same else (made_again("replace the view's query"),)

    def _comment(self, workspace: Workspace) -> str:
        digest = hashlib.sha256(" ".join(self.query(workspace).split()).encode()).hexdigest()[:12]
        return f"{self.description or ''} [query {digest}]".strip()

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the view, with the declared columns if there are any."""
        frame = self.loaded(workspace, dbtable=self.dialect(workspace).table(self.view_name))
        return self.selected(workspace, frame, partitions)

    def create(self, workspace: Workspace) -> None:
        """Create the view, in place of one that is there."""
        if not self.connected(workspace).is_postgres:
            raise SpecError.of(
                f"{self.label}: views can only be created in PostgreSQL",
                remedy="Create it in the database, and read it with a jdbcTable relation.",
            )
        dialect = self.dialect(workspace)
        view = dialect.table(self.view_name)
        # CREATE OR REPLACE would keep the view's columns, which may have changed.
        drop = [dialect.drop(self.view_name, is_view=True)] if self.found(workspace) else []
        comment = f"COMMENT ON VIEW {view} IS {dialect.text(self._comment(workspace))}"
        make = f"CREATE VIEW {view} AS {self.query(workspace)}"
        dialect.database.run([*dialect.make_schema(self.view_name), *drop, make, comment])

    def destroy(self, workspace: Workspace) -> None:
        """Remove the view; the tables it reads stay."""
        if self.found(workspace) is not None:
            dialect = self.dialect(workspace)
            dialect.database.run([dialect.drop(self.view_name, is_view=True)])


class IndexSpec(Model):
    """An index."""

    name: str = Declared(min_length=1, description="Name of the index.")
    columns: Texts = Declared(min_length=1, description="Columns of the index, in order.")
    unique: bool = Declared(default=False, description="Whether the columns must be unique.")
    clustered: bool = Declared(
        default=False,
        description="Whether rows are stored in its order; PostgreSQL and others ignore it.",
    )


class JdbcTableRelation(InDatabase, MigratedTable):
    """A table in a database; readers see each write as a whole, because it is one transaction.

    PostgreSQL is observed without Spark if its Python driver is installed. In other databases, Lakewright
    creates tables and adds columns; any other difference replaces the table if the strategy allows it.
    """

    modes: ClassVar[frozenset[OutputMode]] = frozenset(OutputMode)

    database: str | None = Declared(
        default=None, description="Schema of the database that contains the table; created if missing."
    )
    table: str = Declared(description="Name of the table.")
    staging_table: str | None = Declared(
        default=None, description="Name of the staging table that rows are written to first."
    )
    primary_key: Texts = Declared(default=(), description="Columns of the primary key; never null.")
    merge_key: Texts = Declared(
        default=(), description="Columns that identify a row in mode UPDATE; default: the primary key."
    )
    indexes: Listed[IndexSpec] = Declared(default=(), description="Indexes to create.")
    sql: Texts = Declared(
        default=(),
        description="Statements that create the table, instead of columns; such a table is never migrated.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.indexes and self.sql:
            raise ValueError(
                "`indexes` are created with the table; with `sql`, create them in its statements"
            )
        return self

    @property
    def table_name(self) -> TableName:
        """The name of the table in its database."""
        return TableName(self.table, self.database)

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the table, or one of its partitions."""
        values = canonical_partition(self.partitions, partition or {})
        return frozenset({self.resource(workspace, self.table_name, values)})

    def found(self, workspace: Workspace) -> DatabaseTable | None:
        """Return the table as it is, or None if there is none."""
        return self.dialect(workspace).find(self.table_name)

    def steps(self, workspace: Workspace, found: DatabaseTable) -> tuple[MigrationStep, ...]:
        """Return what makes the table the declared one; one of the project's statements isn't compared."""
        wanted = self._wanted(workspace)
        if wanted is None or self.sql or found.is_view:
            return ()
        return find_table_steps(
            self.dialect(workspace), self.table_name, found, wanted, self.policy(workspace)
        )

    def is_filled(self, workspace: Workspace, found: DatabaseTable, partition: Partition) -> bool:
        """Return whether the table, or a partition of it, has rows."""
        dialect = self.dialect(workspace)
        return dialect.has_rows(self.table_name, dialect.condition(self.partitions, partition))

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the table, with the declared columns if there are any.

        Raises:
            TargetError: The table does not exist.
        """
        self.existing(workspace)
        frame = self.loaded(workspace, dbtable=self.dialect(workspace).table(self.table_name))
        return self.selected(workspace, frame, partitions)

    def create(self, workspace: Workspace, brought: tuple[Field, ...] | None = None) -> None:
        """Create the table; without a declared schema, the first write does so, with its columns."""
        statements = self.creation_sql(workspace, brought)
        if statements and self.found(workspace) is None:
            dialect = self.dialect(workspace)
            dialect.database.run([*dialect.make_schema(self.table_name), *statements])

    def creation_sql(self, workspace: Workspace, brought: tuple[Field, ...] | None = None) -> list[str]:
        """Return the statements that create the table; none if its columns are not known."""
        wanted = self._wanted(workspace, brought)
        if self.sql or wanted is None:
            return list(self.sql)
        return self.dialect(workspace).create(self.table_name, wanted)

    def _wanted(self, workspace: Workspace, brought: tuple[Field, ...] | None = None) -> DatabaseTable | None:
        fields = self.declared(workspace) or brought
        if fields is None:
            return None
        key = {name.lower() for name in self.primary_key}
        return DatabaseTable(
            columns=tuple(
                field.model_copy(update={"nullable": False}) if field.name.lower() in key else field
                for field in fields
            ),
            primary_key=self.primary_key,
            indexes=tuple(Index(each.name, each.columns, each.unique) for each in self.indexes),
            comment=self.description,
        )

    def replace(self, workspace: Workspace) -> None:
        """Replace the table by an empty one that is as declared, in one transaction if the database can."""
        dialect = self.dialect(workspace)
        dialect.database.run([dialect.drop(self.table_name), *self.creation_sql(workspace)])

    def alter(self, workspace: Workspace, steps: Sequence[MigrationStep]) -> None:
        """Run the statements of steps, in one transaction if the database can."""
        self.dialect(workspace).database.run([step.sql for step in steps if step.sql is not None])

    def truncate(self, workspace: Workspace, partition: Partition | None = None) -> None:
        """Remove all rows, or those of a partition."""
        dialect = self.dialect(workspace)
        wanted = canonical_partition(self.partitions, partition or {})
        condition = dialect.condition(self.partitions, wanted)
        dialect.database.run([dialect.delete(self.table_name, condition)])

    def destroy(self, workspace: Workspace) -> None:
        """Remove the table, or the view of its name."""
        present = self.found(workspace)
        if present is not None:
            dialect = self.dialect(workspace)
            dialect.database.run([dialect.drop(self.table_name, is_view=present.is_view)])

    def write(
        self, workspace: Workspace, frame: DataFrame, *, partition: Partition, mode: OutputMode
    ) -> WriteSummary:
        """Write the rows to a staging table, then move them in one transaction.

        Raises:
            TargetError: There is neither a table nor a schema to create it from, or rows do not fit.
        """
        wanted = canonical_partition(self.partitions, partition)
        self.create(workspace, self.brought(frame))
        fields, also = self._outgoing(workspace, frame, wanted)
        frame = frame.withColumns(typed_columns(self.partitions, wanted))
        staged = TableName(self.staging_table, self.database) if self.staging_table else None
        writing = StagedRows(
            dialect=self.dialect(workspace),
            table=self.table_name,
            staged=staged or staging_name(self.table_name, wanted),
            fields=fields,
            partitions=self.partitions,
            key=self.merge_key or self.primary_key,
            ready=workspace.lake.check_commit,
        )
        options = self.options(workspace)
        rows = writing.write(conform(frame, fields, is_strict=True), options, partition=wanted, mode=mode)
        undeclared = tuple(each.name for each in also)
        return WriteSummary(rows, left_out=left_out(frame, fields, wanted), undeclared=undeclared)

    def _outgoing(
        self, workspace: Workspace, frame: DataFrame, partition: Partition
    ) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
        """Return the columns to write, and those of them that are not declared.

        Without a schema, they are those that table and rows have.
        """
        present = self.existing(workspace)
        declared = self.declared(workspace)
        if declared is not None:
            own = {field.name.lower(): field.name for field in present.columns}
            also = undeclared_columns(declared, present.columns, frame)
            fields = (
                field.model_copy(update={"name": own.get(field.name.lower(), field.name)})
                for field in declared
            )
            return (*fields, *also), also
        brought = {field.name.lower() for field in fields_of(frame.schema)} | {n.lower() for n in partition}
        return tuple(field for field in present.columns if field.name.lower() in brought), ()


class SqlServerRelation(JdbcTableRelation):
    """A table in SQL Server: a `jdbcTable` that may be stored by columns.

    The driver's jar is added with `spark.jars`.
    """

    storage_format: Annotated[Literal["ROWSTORE", "COLUMNSTORE"], from_text(str.upper)] = Declared(
        default="ROWSTORE", description="`COLUMNSTORE` creates a clustered columnstore index."
    )

    def creation_sql(self, workspace: Workspace, brought: tuple[Field, ...] | None = None) -> list[str]:
        """Return the statements that create the table and its storage."""
        statements = super().creation_sql(workspace, brought)
        if statements and self.storage_format == "COLUMNSTORE" and not self.sql:
            dialect = self.dialect(workspace)
            index = dialect.name(f"{self.table}_columnstore")
            on = dialect.table(self.table_name)
            statements.append(f"CREATE CLUSTERED COLUMNSTORE INDEX {index} ON {on}")
        return statements
