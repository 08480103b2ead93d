"""Mappings that choose, sort, distribute and measure the rows of their input."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.lake.columns import column
from lakewright.mappings.mapping import ColumnName, InputMapping, NamedColumn
from lakewright.spec.models.base import Listed, Texts, from_text
from lakewright.spec.models.text_marks import SqlText
from lakewright.workspace.query import all_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = [
    "AliasMapping",
    "CoalesceMapping",
    "DeduplicateMapping",
    "DistinctMapping",
    "FilterMapping",
    "ObserveMapping",
    "RebalanceMapping",
    "RepartitionMapping",
    "SortMapping",
]


class FilterMapping(InputMapping):
    """Keeps the rows for which a SQL condition is true."""

    keeps_columns: ClassVar[bool] = True

    condition: Annotated[str, SqlText.CONDITION] = Declared(
        description="SQL condition that rows must satisfy."
    )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the rows that satisfy the condition."""
        return frame.where(self.condition)

    def plain_sql(self, workspace: Workspace) -> str:
        """Return the input's query with the condition."""
        return all_rows(f"({workspace.sql_text(self.input)})", self.condition)


class AliasMapping(InputMapping):
    """Returns its input unchanged."""

    keeps_columns: ClassVar[bool] = True

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the input unchanged."""
        return frame

    def plain_sql(self, workspace: Workspace) -> str:
        """Return the input's query."""
        return workspace.sql_text(self.input)


class DistinctMapping(InputMapping):
    """Returns each distinct row of its input once."""

    keeps_columns: ClassVar[bool] = True

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the distinct rows."""
        return frame.distinct()


class DeduplicateMapping(InputMapping):
    """Returns one arbitrary row for each combination of values in `columns`."""

    keeps_columns: ClassVar[bool] = True

    columns: Listed[ColumnName] = Declared(
        default=(), description="Columns that identify duplicates; default: all."
    )

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the columns that identify duplicates."""
        return self.named("columns", self.columns)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return one row per key, with all columns."""
        return frame.dropDuplicates(list(self.columns)) if self.columns else frame.dropDuplicates()


Direction = Annotated[Literal["asc", "desc"], from_text(str.lower)]


class SortMapping(InputMapping):
    """Sorts by columns, each `asc` or `desc`."""

    keeps_columns: ClassVar[bool] = True

    columns: Listed[dict[str, Direction]] = Declared(
        description="Columns with their direction, most significant first."
    )

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the columns to sort by."""
        return self.named("columns", [name for entry in self.columns for name in entry])

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the sorted rows; nulls come first in ascending order and last in descending order."""
        from pyspark.sql import functions

        order = [(name, direction) for entry in self.columns for name, direction in entry.items()]
        return frame.orderBy(
            *(
                functions.asc(name) if direction == "asc" else functions.desc(name)
                for name, direction in order
            )
        )


class CoalesceMapping(InputMapping):
    """Returns its input in at most so many partitions, by joining neighbours without a shuffle."""

    keeps_columns: ClassVar[bool] = True

    partitions: int = Declared(ge=1, description="Largest number of partitions.")

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the rows in fewer partitions."""
        return frame.coalesce(self.partitions)


class RebalanceMapping(InputMapping):
    """Returns its input in partitions of about the same size."""

    keeps_columns: ClassVar[bool] = True

    partitions: int = Declared(ge=1, description="Number of partitions.")

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the rows, distributed one by one."""
        return frame.repartition(self.partitions)


class RepartitionMapping(InputMapping):
    """Returns its input in partitions in which rows with equal values of columns stand together."""

    keeps_columns: ClassVar[bool] = True

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


class ObserveMapping(InputMapping):
    """Returns its input; the first target that writes it reports the measures as metrics of its own.

    Targets that write rows are those of the kinds `relation`, `file`, `merge`, `copy`, `local` and
    `blackhole`. A measure may be of any type, but only numbers are published as metrics: others are in the
    report and the result, times as ISO 8601 and bytes in hexadecimal digits.
    """

    keeps_columns: ClassVar[bool] = True

    measures: dict[str, str] = Declared(
        min_length=1, description="SQL aggregate expression of each metric, such as `count(*)`."
    )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the input, whose rows are measured when they are written."""
        from pyspark.sql import Observation, functions

        observation = Observation()
        measures = [functions.expr(text).alias(name) for name, text in self.measures.items()]
        found = frame.observe(observation, *measures)
        workspace.observations[self.name] = observation
        return found
