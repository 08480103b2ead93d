"""Databases: running statements, the tables found in them, and SQL that differs between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lakewright.errors import SpecError
from lakewright.schema.fits import fits
from lakewright.schema.shape import plain_type
from lakewright.schema.types import Scalar, Type
from lakewright.spec.models.fields import Field, PartitionField

Row = tuple[Any, ...]
Check = Callable[[Sequence[int]], None]


def accept(changed: Sequence[int]) -> None:
    """Accept any change."""
    del changed


class Database(Protocol):
    """A database; threads may share it, and each runs its statements in its own transactions."""

    def query(self, sql: str, most: int | None = None) -> list[Row]:
        """Return at most `most` rows of a query; numbers may be returned as text.

        Raises:
            DatabaseUnavailable: The database cannot be reached, or a retry may succeed.
            TargetError: The database rejects the query.
        """

    def run(self, statements: Sequence[str], *, is_atomic: bool = True, check: Check = accept) -> list[int]:
        """Run statements in one transaction, or each in its own, and return the number of rows each changed.

        Before the transaction ends, `check` receives these numbers; if it raises, the transaction is rolled
        back.

        Raises:
            DatabaseUnavailable: The database cannot be reached, or a retry may succeed.
            TargetError: The database rejects a statement; with `is_atomic`, none of them has an effect.
        """

    def close(self) -> None:
        """Close its connections."""


@dataclass(frozen=True, slots=True)
class TableName:
    """A table's name, with its schema if that differs from the connection's."""

    name: str
    schema: str | None = None

    def beside(self, name: str) -> TableName:
        """Return another name in the same schema."""
        return TableName(name, self.schema)

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


@dataclass(frozen=True, slots=True)
class Index:
    """An index of a table.

    Attributes:
        is_constraint: Whether it belongs to a constraint, which would have to be dropped instead.
    """

    name: str
    columns: tuple[str, ...]
    is_unique: bool = False
    is_constraint: bool = False

    def same(self, other: Index) -> bool:
        """Return whether both have the same name and definition."""
        return self._make() == other._make()

    def _make(self) -> tuple[str, list[str], bool]:
        return self.name.lower(), [name.lower() for name in self.columns], self.is_unique


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table or view.

    Attributes:
        primary_key: Columns of the primary key.
        key_name: Name of the primary key's constraint, if any.
        indexes: None if they are unknown.
    """

    columns: tuple[Field, ...]
    primary_key: tuple[str, ...] = ()
    key_name: str | None = None
    indexes: tuple[Index, ...] | None = ()
    comment: str | None = None
    is_view: bool = False


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
