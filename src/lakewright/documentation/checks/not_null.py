"""The `notNull` check: a column has no null."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.documentation.checks.check import RowCheck
from lakewright.lake.columns import column as column_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["NotNullCheck"]


class NotNullCheck(RowCheck):
    """Holds if every row has a value in the column."""

    def claim(self, column: str | None) -> str:
        """Return that the column is not null."""
        return f"{self.needed(column)} is not null"

    def rows(self, column: str | None, frame: DataFrame) -> Column | None:
        """Return None, so that all rows are checked."""
        return None

    def condition(self, column: str | None, frame: DataFrame) -> Column:
        """Return that the value is not null."""
        return column_of(self.needed(column)).isNotNull()
