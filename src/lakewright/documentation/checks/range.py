"""The `range` check: the values of a column lie between two bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.documentation.checks.check import RowCheck
from lakewright.lake.columns import column as column_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["RangeCheck"]


class RangeCheck(RowCheck):
    """Holds if each value is null, or neither less than `lower` nor greater than `upper`."""

    lower: str = Declared(description="Smallest allowed value.")
    upper: str = Declared(description="Largest allowed value.")

    def claim(self, column: str | None) -> str:
        """Return the allowed range."""
        return f"{self.needed(column)} is between {self.lower} and {self.upper}"

    def condition(self, column: str | None, frame: DataFrame) -> Column:
        """Return that the value lies between the bounds, which are cast to the column's type."""
        from pyspark.sql import functions

        subject = column_of(self.needed(column))
        found = frame.select(subject).schema[0].dataType
        lower, upper = (functions.lit(text).cast(found) for text in (self.lower, self.upper))
        return subject.between(lower, upper)
