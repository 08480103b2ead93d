"""What every check is: a promise about rows, tried when the documentation is written.

Rows are looked at in one pass for all checks of a frame that only need a condition or a key; the others run
a query of their own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.spec.models.base import Named, Reference

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["Check", "Count", "KeyCheck", "QueryCheck", "RowCheck"]


@dataclass(frozen=True, slots=True)
class Count:
    """What a query of a check's own came to.

    Attributes:
        failing: Rows that fail, to show some of them; None where none can be shown.
        holds: Whether the check holds, where that isn't told by the number of failures.
    """

    passed: int | None = None
    failed: int | None = None
    message: str | None = None
    failing: DataFrame | None = None
    holds: bool | None = None


class Check(Named):
    """A check as declared."""

    description: str | None = Declared(default=None, description="What it means, for people.")
    filter: str | None = Declared(default=None, description="SQL condition: only such rows are checked.")

    @abstractmethod
    def claim(self, column: str | None) -> str:
        """Return what must hold, in a few words; with the column's name, where it is of one."""

    def label(self, column: str | None) -> str:
        """Return what must hold, and of which rows."""
        claim = self.claim(column)
        return claim if self.filter is None else f"{claim}, where {' '.join(self.filter.split())}"

    def needed(self, column: str | None) -> str:
        """Return the column.

        Raises:
            SpecError: The check is written where no column is.
        """
        if column is None:
            raise SpecError.of(
                f"a check of kind {self.kind} is of one column",
                remedy="Write it below an entry of `columns`.",
            )
        return column


class RowCheck(Check):
    """A check that each row passes or fails by itself."""

    def rows(self, column: str | None, frame: DataFrame) -> Column | None:
        """Return which rows are checked; None for all. Where nothing else is said, those with a value."""
        from lakewright.lake.columns import column as column_of

        del frame
        return None if column is None else column_of(column).isNotNull()

    @abstractmethod
    def condition(self, column: str | None, frame: DataFrame) -> Column:
        """Return what a row must meet; null counts as not met."""


class KeyCheck(Check):
    """A check that no two rows have the same values in some columns; rows without any are left out."""

    @abstractmethod
    def key(self, column: str | None) -> tuple[str, ...]:
        """Return the columns."""


class QueryCheck(Check):
    """A check that needs a query of its own."""

    @abstractmethod
    def count(self, column: str | None, frame: DataFrame, workspace: Workspace) -> Count:
        """Return what the query comes to, over rows that are filtered already."""

    def references(self) -> Iterable[Reference]:
        """Return the relations and mappings that it reads."""
        return ()
