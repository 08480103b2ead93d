"""The base classes of checks, which run when the documentation is written.

Checks that need only a condition or a key are counted in one pass over a frame; the others run a query of
their own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.spec.models.base import Named, Reference
from lakewright.spec.models.text_marks import SqlText

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["Check", "Count", "KeyCheck", "QueryCheck", "RowCheck"]


@dataclass(frozen=True, slots=True)
class Count:
    """The result of a check's own query.

    Attributes:
        passed: Number of rows that meet the condition.
        failed: Number of rows that do not.
        message: Further values that the query returned.
        failing: The rows that fail, of which some are shown; None if they are not known.
        holds: Whether the check holds, if the query says so instead of counting rows.
    """

    passed: int | None = None
    failed: int | None = None
    message: str | None = None
    failing: DataFrame | None = None
    holds: bool | None = None


class Check(Named):
    """A condition on rows or on a column."""

    description: str | None = Declared(default=None, description="Description for people.")
    filter: Annotated[str | None, SqlText.CONDITION] = Declared(
        default=None, description="SQL condition that selects the rows to check."
    )

    @abstractmethod
    def claim(self, column: str | None) -> str:
        """Return the condition in a few words, with the name of the column if it applies to one."""

    def label(self, column: str | None) -> str:
        """Return the condition, and the filter of rows if there is one."""
        claim = self.claim(column)
        return claim if self.filter is None else f"{claim}, where {' '.join(self.filter.split())}"

    def needed(self, column: str | None) -> str:
        """Return the column.

        Raises:
            SpecError: The check is not declared for a column.
        """
        if column is None:
            raise SpecError.of(
                f"a check of kind {self.kind} applies to one column",
                remedy="Declare it below an entry of `columns`.",
            )
        return column


class RowCheck(Check):
    """A check that each row passes or fails on its own."""

    def rows(self, column: str | None, frame: DataFrame) -> Column | None:
        """Return the condition of the rows to check, None for all; by default those with a value."""
        from lakewright.lake.columns import column as column_of

        return None if column is None else column_of(column).isNotNull()

    @abstractmethod
    def condition(self, column: str | None, frame: DataFrame) -> Column:
        """Return the condition that a row must meet; null counts as not met."""


class KeyCheck(Check):
    """A check that no two rows have equal values in some columns; rows with nulls only are ignored."""

    @abstractmethod
    def key(self, column: str | None) -> tuple[str, ...]:
        """Return the columns of the key."""


class QueryCheck(Check):
    """A check that needs a query of its own."""

    @abstractmethod
    def count(self, column: str | None, frame: DataFrame, workspace: Workspace) -> Count:
        """Return the result of the query over a frame to which the filter has been applied."""

    def references(self) -> Iterable[Reference]:
        """Return the relations and mappings that the check reads."""
        return ()
