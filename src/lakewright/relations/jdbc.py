"""Relations in databases: `jdbcTable`, `sqlserver`, `jdbcView` and `jdbcQuery`.

Rows are written to a staging table first, then moved to the table in one transaction. Readers see the change
when the transaction commits; until then they neither wait nor see part of it. Rows are therefore deleted and
inserted. Emptying the table would be faster but make readers wait, and replacing it by another table would
lose privileges, views and foreign keys.

Source: the lifecycle's rules, "CREATE and migration".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.connections.connection import ConnectionReference
from lakewright.connections.database import DatabaseTable, Dialect, Index, Statements, TableName, accept
from lakewright.connections.jdbc import JdbcConnection, jdbc_connection
from lakewright.errors import LakewrightError, LeaseLost, SpecError, TargetError
from lakewright.lake.columns import conform, fields_of
from lakewright.lake.partition import Partition, canonical_partition, typed_columns
from lakewright.lake.table import MigrationStep
from lakewright.plan.resource import Resource
from lakewright.relations.migration import (
    REPLACES_TABLE,
    MigratedTable,
    MigratedView,
    MigrationPolicy,
    Shape,
    find_steps,
    made_again,
)
from lakewright.relations.relation import (
    OutputMode,
    Relation,
    WriteSummary,
    left_out,
    undeclared_columns,
)
from lakewright.schema.conversion import convert
from lakewright.schema.fits import fits
from lakewright.schema.sql import name_sql
from lakewright.schema.types import MOST_DIGITS, TEXT, Chars, Decimal, Scalar, Type
from lakewright.spark.engine import counted
from lakewright.spec.models.base import Listed, Model, TextMap, Texts, from_text
from lakewright.spec.models.fields import Field
from lakewright.transform.steps import with_columns
from lakewright.workspace.query import QueryText
from lakewright.workspace.sql_tables import database_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


_POSTGRES_SCHEMA = "public"


class InDatabase(Relation):
    """A relation in a database."""

    connection: ConnectionReference = Declared(description="The connection, or its name.")
    properties: TextMap = Declared(
        default_factory=dict,
        description="Options of Spark's JDBC; they override the connection's.",
    )

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
        """Return the rows of a table (`dbtable`) or a query (`query`).

        Numbers may have more digits than Spark's longest decimal, to which its reader rounds them. They are
        read as texts, and one that does not fit fails the query.
        """
        options = {**self.options(workspace), **option}
        frame = workspace.spark.read.format("jdbc").options(**options).load()
        fields = fields_of(frame.schema)
        rounded = [each.name for each in fields if _may_be_rounded(each.type)]
        if not rounded or any(name.lower() == "customschema" for name in options):
            return frame
        texts = ", ".join(f"{name_sql(name)} STRING" for name in rounded)
        exact = workspace.spark.read.format("jdbc").options(**options, customSchema=texts).load()
        fitting = (
            each for each in self.declared(workspace) or () if each.type == TEXT or _may_be_rounded(each.type)
        )
        types = {each.name.lower(): each.type for each in (*fields, *fitting)}
        made = {n: convert(name_sql(n), TEXT, types[n.lower()], column=n).strict for n in rounded}
        return with_columns(exact, made)


def _may_be_rounded(kind: Type) -> bool:
    """Return whether a type is the longest decimal, to which Spark's reader rounds."""
    return isinstance(kind, Decimal) and kind.precision == MOST_DIGITS


class JdbcQueryRelation(QueryText, InDatabase):
    """The rows of a query in the database's own SQL; read-only."""

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the tables that the query reads."""
        return self.read_by(workspace, self.query(workspace))

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the query, with the declared columns if there are any."""
        return self.selected(workspace, self.loaded(workspace, query=self.query(workspace)), partitions)


class JdbcViewRelation(QueryText, InDatabase, MigratedView):
    """A view in a PostgreSQL database, with a query in the database's own SQL.

    The view's comment has a digest of the query.
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
                "views can only be created in PostgreSQL",
                remedy="Create it in the database, and read it with a jdbcTable relation.",
                subject=self.label,
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
        description="Whether rows are stored in its order.",
    )


class JdbcTableRelation(InDatabase, MigratedTable):
    """A table in a database; each write is one transaction.

    In other databases than PostgreSQL, tables are created and columns added.
    """

    modes: ClassVar[frozenset[OutputMode]] = frozenset(OutputMode)

    database: str | None = Declared(
        default=None, description="Schema that contains the table; created if missing."
    )
    table: str = Declared(description="Name of the table.")
    staging_table: str | None = Declared(
        default=None, description="Staging table that rows are written to first."
    )
    primary_key: Texts = Declared(default=(), description="Columns of the primary key; never null.")
    merge_key: Texts = Declared(
        default=(), description="Columns that identify a row in mode UPDATE; default: primary key."
    )
    indexes: Listed[IndexSpec] = Declared(default=(), description="Indexes to create.")
    sql: Texts = Declared(
        default=(),
        description="Statements that create the table; it is never migrated.",
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
        if typed := typed_columns(self.partitions, wanted):
            frame = frame.withColumns(typed)
        staged = TableName(self.staging_table, self.database) if self.staging_table else None
        staged = staged or staging_name(self.table_name, wanted)
        writing = StagedRows(self, self.dialect(workspace), staged, fields, wanted)
        rows = writing.write(workspace, conform(frame, fields, is_strict=True), mode)
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


def find_table_steps(
    dialect: Dialect, table: TableName, present: DatabaseTable, wanted: DatabaseTable, policy: MigrationPolicy
) -> tuple[MigrationStep, ...]:
    """Return the differences as steps, in an order in which they can be executed."""
    is_strict = policy is MigrationPolicy.STRICT
    # An undeclared key may have been created on purpose; only a strict policy drops it.
    key = wanted.primary_key or (() if is_strict else present.primary_key)
    has_other_key = sorted(_lower(key)) != sorted(_lower(present.primary_key))
    columns = (
        field.model_copy(update={"nullable": field.nullable and field.name.lower() not in _lower(key)})
        for field in wanted.columns
    )
    statements = _statements(dialect, table)
    return (
        *(_drop_key(dialect, table, present) if has_other_key else ()),
        *find_steps(Shape(present.columns), Shape(tuple(columns)), policy, statements),
        *(_add_key(dialect, table, key) if has_other_key else ()),
        *_indexes(dialect, table, present, wanted.indexes or (), is_strict=is_strict),
    )


def _statements(dialect: Dialect, table: TableName) -> Statements:
    own = dialect.statements(table)

    def retype(actual: Field, field: Field) -> str | None:
        is_possible = _is_alterable(actual.type, dialect.stored(field.type))
        return own.retype(actual, field) if is_possible else None

    return replace(own, retype=retype, holds=has_place)


def has_place(narrow: Type, wide: Type) -> bool:
    """Return whether the second type can store every value of the first, including the lengths of text.

    Example:
        >>> has_place(Chars(3), Chars(5)), has_place(Chars(5), Chars(3))
        (True, False)
    """
    if isinstance(wide, Chars):
        is_padded = wide.is_fixed and narrow != wide
        return isinstance(narrow, Chars) and narrow.length <= wide.length and not is_padded
    return fits(narrow, wide)


def _is_alterable(actual: Type, wanted: Type) -> bool:
    """Return whether a database can convert every value: to a type with place for it, or to text."""
    is_plain = isinstance(actual, (Chars, Decimal)) or (
        isinstance(actual, Scalar) and actual != Scalar("binary")
    )
    return has_place(actual, wanted) or (wanted == Scalar("string") and is_plain)


def _drop_key(dialect: Dialect, table: TableName, present: DatabaseTable) -> list[MigrationStep]:
    dropped = dialect.replace_key(table, present.key_name, ()) if present.primary_key else None
    return [MigrationStep("drop the primary key", "; ".join(dropped))] if dropped else []


def _add_key(dialect: Dialect, table: TableName, columns: Sequence[str]) -> list[MigrationStep]:
    added = dialect.replace_key(table, None, columns)
    return [MigrationStep(f"set the primary key to {', '.join(columns)}", "; ".join(added))] if added else []


def _indexes(
    dialect: Dialect,
    table: TableName,
    present: DatabaseTable,
    wanted: Sequence[Index],
    *,
    is_strict: bool,
) -> Iterator[MigrationStep]:
    if present.indexes is None:
        return
    known = {index.name.lower(): index for index in present.indexes}
    names = set(_lower([index.name for index in wanted]))
    for index in present.indexes:
        if is_strict and index.name.lower() not in names and not index.is_constraint:
            yield MigrationStep(f"drop index {index.name}", dialect.drop_index(table, index.name))
    for index in wanted:
        former = known.get(index.name.lower())
        if former is None:
            yield MigrationStep(f"create index {index.name}", dialect.create_index(table, index))
        elif not former.same(index):
            drop, create = dialect.drop_index(table, former.name), dialect.create_index(table, index)
            yield MigrationStep(f"recreate index {index.name}", f"{drop}; {create}")


def _lower(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]


_LONGEST = 63
"""Maximum length of a name in PostgreSQL; other databases allow more."""


def staging_name(table: TableName, partition: Partition) -> TableName:
    """Return the name of a partition's staging table; partitions can be written in parallel."""
    digest = hashlib.sha256(repr((table.name, sorted(partition.items()))).encode()).hexdigest()[:8]
    return table.beside(f"{table.name[: _LONGEST - 16]}_staged_{digest}")


@dataclass(frozen=True, slots=True)
class StagedRows:
    """One write to a table through the table `staged`.

    Attributes:
        fields: The columns to write.
        partition: Where all rows go; empty for the whole table.
    """

    relation: JdbcTableRelation
    dialect: Dialect
    staged: TableName
    fields: tuple[Field, ...]
    partition: Partition

    @property
    def table(self) -> TableName:
        """The table."""
        return self.relation.table_name

    def write(self, workspace: Workspace, frame: DataFrame, mode: OutputMode) -> int:
        """Write the rows and return how many there were."""
        database = self.dialect.database
        database.run(self.dialect.stage_sql(self.table, self.staged, self.fields))
        try:
            rows = self._stage(frame, self.relation.options(workspace))
            workspace.lake.check_commit()
            *before, last = self._statements(mode)
            statements = [*before, last, self.dialect.drop(self.staged)]
            check = accept if mode is OutputMode.UPDATE else partial(self._see, len(before), rows)
            database.run(statements, check=check)
        except LeaseLost:
            # The staging table may belong to another run by now.
            raise
        except BaseException:
            # The next write removes the table too; report the first error instead of this one.
            with suppress(LakewrightError):
                database.run([self.dialect.drop(self.staged)])
            raise
        return rows

    def _see(self, position: int, rows: int, changed: Sequence[int]) -> None:
        """Raise `LeaseLost` unless exactly the rows that this write staged were inserted."""
        if changed[position] != rows:
            raise LeaseLost(
                f"{self.table}: its staging table had {changed[position]} rows instead of the {rows} written",
                remedy="Another run writes the same table. Make sure that only one does, and run again.",
            )

    def _stage(self, frame: DataFrame, options: dict[str, str]) -> int:
        rows, count = counted(frame)
        writer = rows.write.format("jdbc").options(**options)
        writer.option("dbtable", self.dialect.table(self.staged)).mode("append").save()
        return count()

    def _statements(self, mode: OutputMode) -> Sequence[str]:
        columns = [field.name for field in self.fields]
        insert = self.dialect.insert_from(self.table, self.staged, columns)
        if mode is OutputMode.APPEND:
            return [insert]
        if mode is OutputMode.UPDATE:
            return self._update(columns)
        partitions = self.relation.partitions
        if mode is OutputMode.OVERWRITE_DYNAMIC and self.relation.open_columns(self.partition):
            divided_by = [each.name for each in partitions]
            return [self.dialect.delete_met(self.table, self.staged, divided_by), insert]
        condition = self.dialect.condition(partitions, self.partition)
        return [self.dialect.delete(self.table, condition), insert]

    def _update(self, columns: Sequence[str]) -> Sequence[str]:
        key = self.relation.merge_key or self.relation.primary_key
        if not key:
            raise SpecError.of(
                f"rows of {self.table} cannot be updated: no columns are declared that identify a row",
                remedy="Add a mergeKey or a primaryKey to the relation.",
            )
        found = self.dialect.database.query(self.dialect.repeated(self.staged, key), most=1)
        if found:
            values = ", ".join(f"{name}={value}" for name, value in zip(key, found[0], strict=True))
            raise TargetError(
                f"{self.table}: several rows to write have the same key, {values}",
                remedy="Let the mapping return one row per key, with a deduplicate or latest mapping.",
            )
        return [
            self.dialect.update_from(self.table, self.staged, columns, key),
            self.dialect.insert_from(self.table, self.staged, columns, key),
        ]
