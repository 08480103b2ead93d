"""The `expression` check: every row meets a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field as Declared

from lakewright.documentation.checks.check import RowCheck
from lakewright.spec.models.text_marks import SqlText

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["ExpressionCheck"]


class ExpressionCheck(RowCheck):
    """Holds if every row meets the condition; a row for which it is null does not."""

    expression: Annotated[str, SqlText.CONDITION] = Declared(description="SQL condition, over any columns.")

    def claim(self, column: str | None) -> str:
        """Return the condition."""
        return " ".join(self.expression.split())

    def rows(self, column: str | None, frame: DataFrame) -> Column | None:
        """Return None, so that all rows are checked."""
        return None

    def condition(self, column: str | None, frame: DataFrame) -> Column:
        """Return the condition."""
        from pyspark.sql import functions

        return functions.expr(self.expression).cast("boolean")
