"""A database on which statements are run, and its tables as they are found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lakewright.spec.models.fields import Field

__all__ = ["Check", "Database", "DatabaseTable", "Index", "TableName", "accept"]

Row = tuple[Any, ...]
Check = Callable[[Sequence[int]], None]


def accept(changed: Sequence[int]) -> None:
    """Return, whatever was changed."""
    del changed


class Database(Protocol):
    """A database; threads may share it, each runs its statements in transactions of its own."""

    def query(self, sql: str, most: int | None = None) -> list[Row]:
        """Return the rows of a query, `most` of them at most; numbers may come as such or as texts.

        Raises:
            DatabaseUnavailable: The database can't be reached, or trying again may succeed.
            TargetError: It refuses the query.
        """
        ...

    def run(self, statements: Sequence[str], *, is_atomic: bool = True, check: Check = accept) -> list[int]:
        """Run statements, all in one transaction or each in its own, and return the rows each changed.

        What `check` raises, given these numbers before the transaction's end, takes it back.

        Raises:
            DatabaseUnavailable: The database can't be reached, or trying again may succeed.
            TargetError: It refuses a statement; with `is_atomic` none then has had an effect.
        """
        ...

    def close(self) -> None:
        """Let go of its connections."""
        ...


@dataclass(frozen=True, slots=True)
class TableName:
    """A table's name, with its schema where it isn't the connection's own."""

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
        is_constraint: Whether it is that of a constraint, which would have to go instead.
    """

    name: str
    columns: tuple[str, ...]
    is_unique: bool = False
    is_constraint: bool = False

    def same(self, other: Index) -> bool:
        """Return whether both are of one name and make."""
        return self._make() == other._make()

    def _make(self) -> tuple[str, list[str], bool]:
        return self.name.lower(), [name.lower() for name in self.columns], self.is_unique


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table or view.

    Attributes:
        primary_key: Its columns.
        key_name: Name of the primary key's constraint, where there is one.
        indexes: None where they aren't known.
    """

    columns: tuple[Field, ...]
    primary_key: tuple[str, ...] = ()
    key_name: str | None = None
    indexes: tuple[Index, ...] | None = ()
    comment: str | None = None
    is_view: bool = False
