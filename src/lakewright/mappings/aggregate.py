"""The `aggregate` mapping: aggregates over groups of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field as Declared

from lakewright.mappings.mapping import InputMapping
from lakewright.spec.models.base import Texts
from lakewright.spec.models.text_marks import SqlText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["AggregateMapping"]


class AggregateMapping(InputMapping):
    """Returns one row per combination of dimensions, like `SELECT … GROUP BY`."""

    dimensions: Annotated[Texts, SqlText.EXPRESSION] = Declared(
        default=(), description="Columns, or SQL expressions with `AS name`, to group by."
    )
    aggregations: Annotated[dict[str, str], SqlText.EXPRESSION] = Declared(
        description="SQL aggregate expression of each other column."
    )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the dimensions followed by the aggregations; a single row if there are no dimensions."""
        from pyspark.sql import functions

        computed = [functions.expr(text).alias(name) for name, text in self.aggregations.items()]
        return frame.groupBy(*map(functions.expr, self.dimensions)).agg(*computed)
