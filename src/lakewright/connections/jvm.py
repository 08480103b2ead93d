"""Databases reached by a JDBC driver in Spark's JVM.

All but PostgreSQL are supported only as far as Spark's JDBC reader and writer know them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakewright.connections.database import Check, DatabaseTable, Dialect, Statements, TableName, accept
from lakewright.connections.sql import failure
from lakewright.errors import LakewrightError, NotInstalled, SpecError
from lakewright.lake.columns import fields_of
from lakewright.schema.shape import plain_type
from lakewright.schema.sql import name_sql
from lakewright.schema.types import Chars, Scalar, Type
from lakewright.spark.engine import jvm_of
from lakewright.spec.models.fields import Field

if TYPE_CHECKING:
    from py4j.protocol import Py4JJavaError

    from lakewright.lake.lake import Lake


class JvmDatabase:
    """A database with one connection per transaction.

    Attributes:
        place: Its name in messages.
        options: Options of Spark's JDBC reader.
    """

    def __init__(self, lake: Lake, options: Mapping[str, str], place: str) -> None:
        self.place = place
        self.options = {"dbtable": "none", **options}
        self._lake = lake

    def query(self, sql: str, most: int | None = None) -> list[tuple[Any, ...]]:
        """Return at most `most` rows of a query, with all values as text."""
        with self._connected() as connection, _closed(connection.createStatement()) as statement:
            statement.setMaxRows(most or 0)
            found = statement.executeQuery(sql)
            width = range(1, found.getMetaData().getColumnCount() + 1)
            rows = []
            while found.next():
                rows.append(tuple(found.getString(position) for position in width))
            return rows

    def run(self, statements: Sequence[str], *, is_atomic: bool = True, check: Check = accept) -> list[int]:
        """Run statements in one transaction, or each in its own."""
        with self._connected() as connection, _closed(connection.createStatement()) as statement:
            connection.setAutoCommit(not is_atomic)
            changed = []
            for sql in statements:
                statement.execute(sql)
                changed.append(int(statement.getUpdateCount()))
            check(changed)
            if is_atomic:
                connection.commit()
            return changed

    def close(self) -> None:
        """Do nothing, because no connection outlives its transaction."""

    def quoted(self, name: str) -> str:
        """Return a name quoted for the database."""
        return str(self._dialect().quoteIdentifier(name))

    def columns(self, table: str) -> tuple[Field, ...] | None:
        """Return the columns of a table, given by its quoted name, as Spark reads them; None if missing."""
        with self._connected() as connection:
            options = self._options({"dbtable": table})
            schema = self._utilities().getSchemaOption(connection, options)
            if not schema.isDefined():
                return None
            from pyspark.sql.types import StructType

            return fields_of(StructType.fromJson(json.loads(schema.get().json())))

    def columns_sql(self, ddl: str, bounded: Mapping[str, str]) -> str:
        """Return columns of a Spark DDL in the database's SQL; `bounded` has types of length-limited text."""
        jvm = self._jvm()
        schema = jvm.org.apache.spark.sql.types.StructType.fromDDL(ddl)
        listed = ", ".join(f"{name_sql(name)} {written}" for name, written in bounded.items())
        types = jvm.scala.Option.apply(listed or None)
        return str(self._utilities().schemaString(self._dialect(), schema, False, types))

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        from py4j.protocol import Py4JJavaError

        try:
            connection = self._dialect().createConnectionFactory(self._options({})).apply(-1)
            with _closed(connection):
                try:
                    yield connection
                except BaseException:
                    if not connection.getAutoCommit():
                        connection.rollback()
                    raise
        except Py4JJavaError as error:
            raise _failure(self.place, error) from error

    def _jvm(self) -> Any:
        jvm = jvm_of(self._lake.spark)
        if jvm is None:
            raise SpecError.of(
                f"{self.place} cannot be reached through Spark Connect",
                remedy="For PostgreSQL, install its Python driver: pip install 'lakewright[postgres]'.",
            )
        return jvm.packages

    def _utilities(self) -> Any:
        return self._jvm().org.apache.spark.sql.execution.datasources.jdbc.JdbcUtils

    def _dialect(self) -> Any:
        return self._jvm().org.apache.spark.sql.jdbc.JdbcDialects.get(self.options["url"])

    def _options(self, more: Mapping[str, str]) -> Any:
        jvm = self._jvm()
        options = jvm.PythonUtils.toScalaMap({**self.options, **more})
        return jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(options)


@contextmanager
def _closed(thing: Any) -> Iterator[Any]:
    try:
        yield thing
    finally:
        thing.close()


def _failure(place: str, error: Py4JJavaError) -> LakewrightError:
    cause: Any = error.java_exception
    name = cause.getClass().getName()
    if name in ("java.lang.ClassNotFoundException", "java.sql.SQLException") and not _state(cause):
        return NotInstalled(
            f"{place}: the JDBC driver cannot be loaded: {cause.getMessage()}",
            remedy="Add the driver's jar to the configuration: spark.jars=….",
        )
    return failure(place, _state(cause) or "XX000", str(cause.getMessage()))


def _state(cause: Any) -> str | None:
    from py4j.protocol import Py4JError

    try:
        state = cause.getSQLState()
    except Py4JError:  # the response does not come from the database
        return None
    return None if state is None else str(state)


class StandardDialect(Dialect):
    """Creates tables, adds columns and transfers rows with standard SQL; other changes replace the table."""

    def __init__(self, database: JvmDatabase) -> None:
        super().__init__(database)
        self._jvm = database

    def name(self, name: str) -> str:
        """Return a name quoted for the database."""
        return self._jvm.quoted(name)

    def find(self, table: TableName) -> DatabaseTable | None:
        """Return the columns of a table or view, or None; nothing else about it is known."""
        fields = self._jvm.columns(self.table(table))
        return None if fields is None else DatabaseTable(fields, indexes=None)

    def stored(self, declared: Type) -> Type:
        """Return the type as Spark reads it back."""
        found = plain_type(declared)
        return Scalar("int") if found in (Scalar("tinyint"), Scalar("smallint")) else found

    def create(self, table: TableName, wanted: DatabaseTable) -> list[str]:
        """Return the statements that create a table and its indexes."""
        key = [f"PRIMARY KEY ({self.names(wanted.primary_key)})"] if wanted.primary_key else []
        columns = ", ".join([self._columns(wanted.columns), *key])
        indexes = [self.create_index(table, index) for index in wanted.indexes or ()]
        return [f"CREATE TABLE {self.table(table)} ({columns})", *indexes]

    def _columns(self, fields: Sequence[Field]) -> str:
        bounded = {field.name: field.type.ddl for field in fields if isinstance(field.type, Chars)}
        plain = [field.model_copy(update={"type": plain_type(field.type)}) for field in fields]
        return self._jvm.columns_sql(", ".join(field.ddl for field in plain), bounded)

    def stage_sql(self, table: TableName, staged: TableName, fields: Sequence[Field]) -> list[str]:
        """Return the statements that create an empty table with columns."""
        drop = [self.drop(staged)] if self.find(staged) else []
        plain = [field.model_copy(update={"nullable": True}) for field in fields]
        return [*drop, f"CREATE TABLE {self.table(staged)} ({self._columns(plain)})"]

    def statements(self, table: TableName) -> Statements:
        """Return the statement that adds a nullable column."""

        def add(field: Field) -> str | None:
            added = f"ALTER TABLE {self.table(table)} ADD {self._columns([field])}"
            return added if field.nullable else None

        return Statements(add=add, stored=self.stored)
