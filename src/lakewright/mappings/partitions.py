"""The `coalesce`, `rebalance` and `repartition` mappings: the same rows in other partitions of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.lake.columns import column
from lakewright.mappings.mapping import InputMapping
from lakewright.spec.models.base import Texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["CoalesceMapping", "RebalanceMapping", "RepartitionMapping"]


class CoalesceMapping(InputMapping):
    """Returns its input in at most so many partitions, by joining neighbours without a shuffle."""

    partitions: int = Declared(ge=1, description="Largest number of partitions.")

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the rows in fewer partitions."""
        return frame.coalesce(self.partitions)


class RebalanceMapping(InputMapping):
    """Returns its input in partitions of about the same size."""

    partitions: int = Declared(ge=1, description="Number of partitions.")

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the rows, distributed one by one."""
        return frame.repartition(self.partitions)


class RepartitionMapping(InputMapping):
    """Returns its input in partitions in which rows with equal values of columns stand together."""

    partitions: int | None = Declared(
        default=None, ge=1, description="Number of partitions; default: Spark's."
    )
    columns: Texts = Declared(default=(), description="Columns by whose values the rows are distributed.")
    sort: bool = Declared(default=False, description="Sort each partition by the columns.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.partitions is None and not self.columns:
            raise ValueError("a repartition mapping needs `partitions`, `columns` or both")
        return self

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the rows, distributed by the columns."""
        by = [column(name) for name in self.columns]
        number = self.partitions
        found = frame.repartition(*by) if number is None else frame.repartition(number, *by)
        return found.sortWithinPartitions(*by) if self.sort and by else found
