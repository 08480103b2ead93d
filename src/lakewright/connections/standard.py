"""Databases that are supported only as far as Spark's JDBC reader and writer know them."""

from __future__ import annotations

from collections.abc import Sequence

from lakewright.connections.database import DatabaseTable, TableName
from lakewright.connections.dialect import Dialect
from lakewright.connections.jvm import JvmDatabase
from lakewright.lake.columns import engine_type
from lakewright.spec.models.fields import Field
from lakewright.spec.models.types import Chars, Scalar, Type

__all__ = ["StandardDialect"]


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
        found = engine_type(declared)
        return Scalar("int") if found in (Scalar("tinyint"), Scalar("smallint")) else found

    def create(self, table: TableName, wanted: DatabaseTable) -> list[str]:
        """Return the statements that create a table and its indexes."""
        key = [f"PRIMARY KEY ({self.names(wanted.primary_key)})"] if wanted.primary_key else []
        columns = ", ".join([self._columns(wanted.columns), *key])
        indexes = [self.create_index(table, index) for index in wanted.indexes or ()]
        return [f"CREATE TABLE {self.table(table)} ({columns})", *indexes]

    def _columns(self, fields: Sequence[Field]) -> str:
        bounded = {field.name: field.type.ddl for field in fields if isinstance(field.type, Chars)}
        plain = [field.model_copy(update={"type": engine_type(field.type)}) for field in fields]
        return self._jvm.columns_sql(", ".join(field.ddl for field in plain), bounded)

    def stage_sql(self, table: TableName, staged: TableName, fields: Sequence[Field]) -> list[str]:
        """Return the statements that create an empty table with columns."""
        del table
        drop = [self.drop(staged)] if self.find(staged) else []
        plain = [field.model_copy(update={"nullable": True}) for field in fields]
        return [*drop, f"CREATE TABLE {self.table(staged)} ({self._columns(plain)})"]

    def add_column(self, table: TableName, field: Field) -> str | None:
        """Return the statement that adds a nullable column."""
        return f"ALTER TABLE {self.table(table)} ADD {self._columns([field])}" if field.nullable else None
