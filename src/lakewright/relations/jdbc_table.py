"""The `jdbcTable` relation: a table in a database."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.connections.database import DatabaseTable, Index, TableName
from lakewright.errors import TargetError
from lakewright.lake.columns import conform, fields_of
from lakewright.lake.partition import Partition, canonical_partition, typed_columns
from lakewright.lake.table import MigrationStep
from lakewright.plan.resource import Resource
from lakewright.relations.jdbc import InDatabase
from lakewright.relations.jdbc_migration import find_table_steps
from lakewright.relations.jdbc_write import StagedRows, staging_name
from lakewright.relations.migrated import MigratedTable, Present
from lakewright.relations.migration import Migration
from lakewright.relations.relation import OutputMode, WriteSummary, left_out, undeclared_columns
from lakewright.spec.models.base import Listed, Model, Texts, from_text
from lakewright.spec.models.fields import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["IndexSpec", "JdbcTableRelation", "SqlServerRelation"]


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

    def fields(self, workspace: Workspace) -> tuple[Field, ...]:
        """Return the declared columns, or those of the database."""
        return self.declared(workspace) or self._existing(workspace).columns

    def present(self, workspace: Workspace) -> Present | None:
        """Return the table as it is, or None if there is none."""
        found, steps = self._find(workspace), tuple[MigrationStep, ...]()
        if found is None:
            return None
        wanted = self._wanted(workspace)
        if wanted is not None and not self.sql and not found.is_view:
            dialect = self.dialect(workspace)
            steps = find_table_steps(dialect, self.table_name, found, wanted, self.policy(workspace))
        migration = Migration(steps, self.strategy(workspace))
        return Present(found.columns, migration, partial(self._has_rows, workspace))

    def _find(self, workspace: Workspace) -> DatabaseTable | None:
        return self.dialect(workspace).find(self.table_name)

    def _existing(self, workspace: Workspace) -> DatabaseTable:
        present = self._find(workspace)
        if present is None:
            raise TargetError(
                f"{self.label}: there is no table {self.table_name} in {self.connected(workspace).place}",
                remedy="Run the phase that creates it; without a schema, create it in the database.",
            )
        return present

    def _has_rows(self, workspace: Workspace, partition: Partition) -> bool:
        dialect = self.dialect(workspace)
        return dialect.has_rows(self.table_name, dialect.condition(self.partitions, partition))

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the table, with the declared columns if there are any.

        Raises:
            TargetError: The table does not exist.
        """
        self._existing(workspace)
        frame = self.loaded(workspace, dbtable=self.dialect(workspace).table(self.table_name))
        frame = self.within(frame, partitions)
        fields = self.declared(workspace)
        return frame if fields is None else conform(frame, fields)

    def create(self, workspace: Workspace, brought: tuple[Field, ...] | None = None) -> None:
        """Create the table; without a declared schema, the first write does so, with its columns."""
        statements = self.creation_sql(workspace, brought)
        if statements and self._find(workspace) is None:
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
        present = self._find(workspace)
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
        for name, value in typed_columns(self.partitions, wanted).items():
            frame = frame.withColumn(name, value)
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
        present = self._existing(workspace)
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
