"""What is said differently to one database and to another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from lakewright.connections.database import Database, DatabaseTable, Index, TableName
from lakewright.errors import SpecError
from lakewright.spec.models.fields import Field, PartitionField
from lakewright.spec.models.types import Scalar, Type

__all__ = ["Dialect"]

_BARE = frozenset(("tinyint", "smallint", "int", "bigint", "float", "double"))


class Dialect(ABC):
    """A database with the SQL that it understands."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()

    def name(self, name: str) -> str:
        """Return a column's or table's name, quoted."""
        return '"' + name.replace('"', '""') + '"'

    def table(self, table: TableName) -> str:
        """Return a table's name, quoted."""
        return ".".join(self.name(part) for part in (table.schema, table.name) if part)

    def names(self, names: Iterable[str]) -> str:
        """Return a list of columns, quoted."""
        return ", ".join(map(self.name, names))

    def text(self, text: str) -> str:
        """Return a text as a literal."""
        return "'" + text.replace("'", "''") + "'"

    def literal(self, text: str, declared: Type) -> str:
        """Return a value as a literal of a type."""
        if isinstance(declared, Scalar) and declared.name in _BARE:
            return text
        if isinstance(declared, Scalar) and declared.name in ("date", "timestamp"):
            return f"{declared.name.upper()} {self.text(text)}"
        return self.text(text)

    def condition(self, columns: Iterable[PartitionField], partition: Mapping[str, str]) -> str | None:
        """Return the condition that a row is in a partition; None for the whole."""
        types = {each.name: each.type for each in columns}
        terms = [f"{self.name(key)} = {self.literal(text, types[key])}" for key, text in partition.items()]
        return " AND ".join(terms) or None

    def has_rows(self, table: TableName, condition: str | None) -> bool:
        """Return whether there is a row that meets the condition."""
        where = f" WHERE {condition}" if condition else ""
        return bool(self.database.query(f"SELECT 1 FROM {self.table(table)}{where}", most=1))

    def delete(self, table: TableName, condition: str | None = None) -> str:
        """Return the statement that removes rows; readers see them until it is committed."""
        return f"DELETE FROM {self.table(table)}" + (f" WHERE {condition}" if condition else "")

    def same(self, columns: Sequence[str]) -> str:
        """Return the condition that rows of `staged` and of the table agree in columns."""
        return " AND ".join(f"staged.{self.name(each)} = present.{self.name(each)}" for each in columns)

    def delete_met(self, table: TableName, staged: TableName, columns: Sequence[str]) -> str:
        """Return the statement that removes rows which agree with a staged one in columns."""
        inner = self.table(table)
        terms = " AND ".join(f"staged.{self.name(c)} = {inner}.{self.name(c)}" for c in columns)
        return f"DELETE FROM {inner} WHERE EXISTS (SELECT 1 FROM {self.table(staged)} staged WHERE {terms})"

    def insert_from(
        self, table: TableName, staged: TableName, columns: Sequence[str], key: Sequence[str] = ()
    ) -> str:
        """Return the statement that adds staged rows; with a key only those that no present row has."""
        listed = self.names(columns)
        found = f"INSERT INTO {self.table(table)} ({listed}) SELECT {listed} FROM {self.table(staged)} staged"
        if not key:
            return found
        return f"{found} WHERE NOT EXISTS (SELECT 1 FROM {self.table(table)} present WHERE {self.same(key)})"

    def update_from(
        self, table: TableName, staged: TableName, columns: Sequence[str], key: Sequence[str]
    ) -> str:
        """Return the statement that brings rows with a staged row's key to what is staged.

        Raises:
            SpecError: None is known for this database.
        """
        del staged, columns, key
        raise SpecError.of(
            f"rows of {table} can't be updated: that is known of PostgreSQL only",
            remedy="Write with mode OVERWRITE or APPEND.",
        )

    def repeated(self, table: TableName, columns: Sequence[str]) -> str:
        """Return the query of the values that more than one row has in columns."""
        listed = self.names(columns)
        return f"SELECT {listed} FROM {self.table(table)} GROUP BY {listed} HAVING COUNT(*) > 1"

    def drop(self, table: TableName, *, is_view: bool = False) -> str:
        """Return the statement that removes a table or view that is there."""
        return f"DROP {'VIEW' if is_view else 'TABLE'} {self.table(table)}"

    @abstractmethod
    def stage_sql(self, table: TableName, staged: TableName, fields: Sequence[Field]) -> list[str]:
        """Return the statements that make an empty table, with columns like another's, to write rows to."""

    @abstractmethod
    def find(self, table: TableName) -> DatabaseTable | None:
        """Return the table as it is, or None."""

    def make_schema(self, table: TableName) -> list[str]:
        """Return the statements that make a table's schema if it is missing; none where it must be there."""
        del table
        return []

    @abstractmethod
    def create(self, table: TableName, wanted: DatabaseTable) -> list[str]:
        """Return the statements that make a table."""

    @abstractmethod
    def stored(self, declared: Type) -> Type:
        """Return the type as which the database gives back what is declared.

        Raises:
            SpecError: It has no such type.
        """

    def add_column(self, table: TableName, field: Field) -> str | None:
        """Return the statement that adds a column, or None where none is known."""
        del table, field
        return None

    def rename_column(self, table: TableName, old: str, new: str) -> str | None:
        """Return the statement that renames a column, or None."""
        del table, old, new
        return None

    def drop_column(self, table: TableName, name: str) -> str | None:
        """Return the statement that removes a column, or None."""
        del table, name
        return None

    def widen_column(self, table: TableName, field: Field) -> str | None:
        """Return the statement that gives a column a type into which its present one fits, or None."""
        del table, field
        return None

    def set_nullable(self, table: TableName, field: Field) -> str | None:
        """Return the statement that lets a column be null, or never be null, as declared; or None."""
        del table, field
        return None

    def comment_column(self, table: TableName, field: Field) -> str | None:
        """Return the statement that describes a column, or None."""
        del table, field
        return None

    def replace_key(self, table: TableName, key_name: str | None, columns: Sequence[str]) -> list[str] | None:
        """Return the statements that give a table another primary key, or None."""
        del table, key_name, columns
        return None

    def create_index(self, table: TableName, index: Index) -> str:
        """Return the statement that makes an index."""
        unique = "UNIQUE " if index.is_unique else ""
        name = self.name(index.name)
        return f"CREATE {unique}INDEX {name} ON {self.table(table)} ({self.names(index.columns)})"

    def drop_index(self, table: TableName, name: str) -> str:
        """Return the statement that removes an index."""
        return f"DROP INDEX {self.table(table.beside(name))}"
