"""The `aggregate` mapping: groups of rows and what is computed over each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.mappings.mapping import InputMapping
from lakewright.spec.models.base import Texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["AggregateMapping"]


class AggregateMapping(InputMapping):
    """Gives a row for each combination of dimensions, as `SELECT … GROUP BY` does."""

    dimensions: Texts = Declared(
        default=(), description="Columns, or SQL expressions with `AS name`, to group by."
    )
    aggregations: dict[str, str] = Declared(description="SQL aggregate expression for each further column.")

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return dimensions, then aggregations; without dimensions one row."""
        from pyspark.sql import functions

        del workspace
        computed = [functions.expr(text).alias(name) for name, text in self.aggregations.items()]
        return frame.groupBy(*map(functions.expr, self.dimensions)).agg(*computed)
