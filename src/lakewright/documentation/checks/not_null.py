"""The `notNull` check: a column without null."""

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
        """Return what must hold."""
        return f"{self.needed(column)} is not null"

    def rows(self, column: str | None, frame: DataFrame) -> Column | None:
        """Return all rows."""
        del column, frame
        return None

    def condition(self, column: str | None, frame: DataFrame) -> Column:
        """Return that there is a value."""
        del frame
        return column_of(self.needed(column)).isNotNull()
