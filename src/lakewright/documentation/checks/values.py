"""The `values` check: a column holds only values of a list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.documentation.checks.check import RowCheck
from lakewright.lake.columns import column as column_of
from lakewright.spec.models.base import Texts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["ValuesCheck"]

_SHOWN = 8


class ValuesCheck(RowCheck):
    """Holds if each value is null or in the list."""

    values: Texts = Declared(min_length=1, description="Allowed values.")

    def claim(self, column: str | None) -> str:
        """Return the allowed values."""
        more = ", …" if len(self.values) > _SHOWN else ""
        return f"{self.needed(column)} is one of {', '.join(self.values[:_SHOWN])}{more}"

    def condition(self, column: str | None, frame: DataFrame) -> Column:
        """Return that the value is in the list, whose values are cast to the column's type."""
        from pyspark.sql import functions

        subject = column_of(self.needed(column))
        found = frame.select(subject).schema[0].dataType
        return subject.isin([functions.lit(value).cast(found) for value in self.values])
