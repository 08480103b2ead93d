"""Databases: running statements, and the tables found in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lakewright.spec.models.fields import Field

__all__ = ["Check", "Database", "DatabaseTable", "Index", "TableName", "accept"]

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
        ...

    def run(self, statements: Sequence[str], *, is_atomic: bool = True, check: Check = accept) -> list[int]:
        """Run statements in one transaction, or each in its own, and return the number of rows each changed.

        Before the transaction ends, `check` receives these numbers; if it raises, the transaction is rolled
        back.

        Raises:
            DatabaseUnavailable: The database cannot be reached, or a retry may succeed.
            TargetError: The database rejects a statement; with `is_atomic`, none of them has an effect.
        """
        ...

    def close(self) -> None:
        """Close its connections."""
        ...


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
