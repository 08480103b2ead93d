"""Dialects: SQL that differs between databases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lakewright.connections.database import Database, DatabaseTable, Index, TableName
from lakewright.errors import SpecError
from lakewright.schema.fits import fits
from lakewright.schema.shape import plain_type
from lakewright.schema.types import Scalar, Type
from lakewright.spec.models.fields import Field, PartitionField

__all__ = ["Dialect", "Statements"]

_BARE = frozenset(("tinyint", "smallint", "int", "bigint", "float", "double"))


def never(*_: object) -> None:
    """Return that there is no such statement."""


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements with which a place alters a table; one that it does not support is None.

    Attributes:
        rename: Renames a column, by its former and its new name.
        drop: Drops a column.
        add: Adds a column.
        retype: Changes the type of a column, by what it is and what it shall be.
        set_nullable: Allows or forbids nulls in a column.
        comment: Sets the comment of a column.
        stored: Returns the type that a column of a declared type has.
        holds: Returns whether the second type has a place for all values of the first.
    """

    rename: Callable[[str, str], str | None] = never
    drop: Callable[[str], str | None] = never
    add: Callable[[Field], str | None] = never
    retype: Callable[[Field, Field], str | None] = never
    set_nullable: Callable[[Field], str | None] = never
    comment: Callable[[Field], str | None] = never
    stored: Callable[[Type], Type] = plain_type
    holds: Callable[[Type, Type], bool] = fits


class Dialect(ABC):
    """A database together with its SQL dialect."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def name(self, name: str) -> str:
        """Return the quoted name of a column or table."""
        return '"' + name.replace('"', '""') + '"'

    def table(self, table: TableName) -> str:
        """Return the quoted name of a table."""
        return ".".join(self.name(part) for part in (table.schema, table.name) if part)

    def names(self, names: Iterable[str]) -> str:
        """Return a list of quoted columns."""
        return ", ".join(map(self.name, names))

    def text(self, text: str) -> str:
        """Return a text as a literal of SQL."""
        return "'" + text.replace("'", "''") + "'"

    def literal(self, text: str, declared: Type) -> str:
        """Return a value as a literal of a type."""
        if isinstance(declared, Scalar) and declared.name in _BARE:
            return text
        if isinstance(declared, Scalar) and declared.name in ("date", "timestamp"):
            return f"{declared.name.upper()} {self.text(text)}"
        return self.text(text)

    def condition(self, columns: Iterable[PartitionField], partition: Mapping[str, str]) -> str | None:
        """Return the condition that selects a partition; None for the whole table."""
        types = {each.name: each.type for each in columns}
        terms = [f"{self.name(key)} = {self.literal(text, types[key])}" for key, text in partition.items()]
        return " AND ".join(terms) or None

    def has_rows(self, table: TableName, condition: str | None) -> bool:
        """Return whether any row satisfies the condition."""
        where = f" WHERE {condition}" if condition else ""
        return bool(self.database.query(f"SELECT 1 FROM {self.table(table)}{where}", most=1))

    def delete(self, table: TableName, condition: str | None = None) -> str:
        """Return the statement that deletes rows; readers see them until the commit."""
        return f"DELETE FROM {self.table(table)}" + (f" WHERE {condition}" if condition else "")

    def same(self, columns: Sequence[str]) -> str:
        """Return the condition that rows of `staged` and of the table have equal columns."""
        return " AND ".join(f"staged.{self.name(each)} = present.{self.name(each)}" for each in columns)

    def delete_met(self, table: TableName, staged: TableName, columns: Sequence[str]) -> str:
        """Return the statement that deletes rows with the same columns as a staged row."""
        inner = self.table(table)
        terms = " AND ".join(f"staged.{self.name(c)} = {inner}.{self.name(c)}" for c in columns)
        return f"DELETE FROM {inner} WHERE EXISTS (SELECT 1 FROM {self.table(staged)} staged WHERE {terms})"

    def insert_from(
        self, table: TableName, staged: TableName, columns: Sequence[str], key: Sequence[str] = ()
    ) -> str:
        """Return the statement that inserts staged rows; with a key, only those with a new key."""
        listed = self.names(columns)
        found = f"INSERT INTO {self.table(table)} ({listed}) SELECT {listed} FROM {self.table(staged)} staged"
        if not key:
            return found
        return f"{found} WHERE NOT EXISTS (SELECT 1 FROM {self.table(table)} present WHERE {self.same(key)})"

    def update_from(
        self, table: TableName, staged: TableName, columns: Sequence[str], key: Sequence[str]
    ) -> str:
        """Return the statement that updates rows from staged rows with the same key.

        Raises:
            SpecError: This database is not supported.
        """
        raise SpecError.of(
            f"rows of {table} cannot be updated: only PostgreSQL is supported",
            remedy="Write with mode OVERWRITE or APPEND.",
        )

    def repeated(self, table: TableName, columns: Sequence[str]) -> str:
        """Return the query for column values that occur in more than one row."""
        listed = self.names(columns)
        return f"SELECT {listed} FROM {self.table(table)} GROUP BY {listed} HAVING COUNT(*) > 1"

    def drop(self, table: TableName, *, is_view: bool = False) -> str:
        """Return the statement that drops an existing table or view."""
        return f"DROP {'VIEW' if is_view else 'TABLE'} {self.table(table)}"

    @abstractmethod
    def stage_sql(self, table: TableName, staged: TableName, fields: Sequence[Field]) -> list[str]:
        """Return the statements that create an empty staging table with the columns of another table."""

    @abstractmethod
    def find(self, table: TableName) -> DatabaseTable | None:
        """Return the table as it exists, or None."""

    def make_schema(self, table: TableName) -> list[str]:
        """Return the statements that create a missing schema of a table; empty if it must exist already."""
        return []

    @abstractmethod
    def create(self, table: TableName, wanted: DatabaseTable) -> list[str]:
        """Return the statements that create a table."""

    @abstractmethod
    def stored(self, declared: Type) -> Type:
        """Return the type that the database reports for a declared type.

        Raises:
            SpecError: The database has no such type.
        """

    def statements(self, table: TableName) -> Statements:
        """Return the statements that alter the columns of a table."""
        return Statements(stored=self.stored)

    def replace_key(self, table: TableName, key_name: str | None, columns: Sequence[str]) -> list[str] | None:
        """Return the statements that replace a table's primary key, or None."""
        return None

    def create_index(self, table: TableName, index: Index) -> str:
        """Return the statement that creates an index."""
        unique = "UNIQUE " if index.is_unique else ""
        name = self.name(index.name)
        return f"CREATE {unique}INDEX {name} ON {self.table(table)} ({self.names(index.columns)})"

    def drop_index(self, table: TableName, name: str) -> str:
        """Return the statement that drops an index."""
        return f"DROP INDEX {self.table(table.beside(name))}"
