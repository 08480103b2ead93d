"""Mappings that choose, order, distribute, measure and aggregate the rows of their input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.lake.columns import column
from lakewright.mappings.mapping import MAIN, ColumnName, InputMapping, NamedColumn
from lakewright.spark.functions import functions
from lakewright.spec.models.base import Listed, Model, Texts, from_text
from lakewright.spec.models.text_marks import SqlText
from lakewright.workspace.query import all_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakewright.workspace.workspace import Workspace


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

    naming_fields: ClassVar[tuple[str, ...]] = ("columns",)

    columns: Listed[ColumnName] = Declared(
        default=(), description="Columns that identify duplicates; default: all."
    )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return one row per key, with all columns."""
        return frame.dropDuplicates(list(self.columns)) if self.columns else frame.dropDuplicates()


Direction = Annotated[Literal["asc", "desc"], from_text(str.lower)]


class SortMapping(InputMapping):
    """Sorts by columns, each `asc` or `desc`."""

    keeps_columns: ClassVar[bool] = True

    columns: Listed[dict[str, Direction]] = Declared(
        description="Direction by column, most significant first."
    )

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the columns to sort by."""
        return self.named("columns", [name for entry in self.columns for name in entry])

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the sorted rows; nulls come first in ascending order and last in descending order."""
        order = (each for entry in self.columns for each in entry.items())
        return frame.orderBy(*(getattr(functions, direction)(name) for name, direction in order))


class CoalesceMapping(InputMapping):
    """Returns its input in at most so many partitions, without a shuffle."""

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
    """Returns its input in partitions by the values of columns."""

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
    """Returns its input; the first target that writes it reports the measures as its metrics.

    Only numbers are published as metrics; other types are in the result.
    """

    keeps_columns: ClassVar[bool] = True

    measures: dict[str, str] = Declared(
        min_length=1, description="SQL aggregate expression of each metric, such as `count(*)`."
    )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the input, whose rows are measured when they are written."""
        from pyspark.sql import Observation

        observation = Observation()
        measures = [functions.expr(text).alias(name) for name, text in self.measures.items()]
        found = frame.observe(observation, *measures)
        workspace.observations[self.name] = observation
        return found


_POSITION = "__position"


class LatestMapping(InputMapping):
    """Keeps the row with the greatest version of each key; a null version is the smallest."""

    keeps_columns: ClassVar[bool] = True

    naming_fields: ClassVar[tuple[str, ...]] = ("key_columns", "version_columns")

    key_columns: Listed[ColumnName] = Declared(min_length=1, description="Columns that identify a key.")
    version_columns: Listed[ColumnName] = Declared(
        min_length=1, description="Columns that order the versions, most significant first."
    )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return one row per key, with all columns."""
        from pyspark.sql import Window

        window = Window.partitionBy(*map(column, self.key_columns)).orderBy(*self.order())
        numbered = frame.withColumn(_POSITION, functions.row_number().over(window))
        return numbered.where(column(_POSITION) == 1).drop(_POSITION)

    def order(self) -> list[Column]:
        """Return the sort order in which the wanted version comes first."""
        return [column(name).desc_nulls_last() for name in self.version_columns]


class EarliestMapping(LatestMapping):
    """Keeps the row with the smallest version of each key; a null version is the greatest."""

    def order(self) -> list[Column]:
        """Return the sort order in which the wanted version comes first."""
        return [column(name).asc_nulls_last() for name in self.version_columns]


Position = Annotated[Literal["beginning", "end"], from_text(str.lower)]


class HistorizeMapping(InputMapping):
    """Adds the interval in which each row is valid: from its own time to that of the key's next row.

    The end of the last row is null.
    """

    naming_fields: ClassVar[tuple[str, ...]] = ("key_columns", "time_column")

    key_columns: Listed[ColumnName] = Declared(min_length=1, description="Columns that identify a key.")
    time_column: ColumnName = Declared(description="Column with the time of a row.")
    valid_from_column: str = Declared(default="valid_from", description="New column: the beginning.")
    valid_to_column: str = Declared(default="valid_to", description="New column: the end, exclusive.")
    column_insert_position: Position = Declared(default="end", description="Position of the new columns.")

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return all rows with the two new columns."""
        from pyspark.sql import Window

        time = column(self.time_column)
        window = Window.partitionBy(*map(column, self.key_columns)).orderBy(time)
        new = [
            time.alias(self.valid_from_column),
            functions.lead(time).over(window).alias(self.valid_to_column),
        ]
        old = [column(name) for name in frame.columns]
        return frame.select(*([*new, *old] if self.column_insert_position == "beginning" else [*old, *new]))


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
        computed = [functions.expr(text).alias(name) for name, text in self.aggregations.items()]
        return frame.groupBy(*map(functions.expr, self.dimensions)).agg(*computed)


class AggregationGroup(Model):
    """One aggregate of the input."""

    dimensions: Annotated[Texts, SqlText.EXPRESSION] = Declared(
        default=(), description="Columns to group by."
    )
    aggregations: Texts = Declared(default=(), description="Names of the aggregations; default: all.")
    filter: Annotated[str | None, SqlText.CONDITION] = Declared(
        default=None, description="SQL condition for rows of the input."
    )
    having: str | None = Declared(default=None, description="SQL condition for rows of the result.")


class GroupedAggregateMapping(InputMapping):
    """Aggregates its input by several groups, each of which is the output `name:group`."""

    aggregations: Annotated[dict[str, str], SqlText.EXPRESSION] = Declared(
        min_length=1, description="SQL aggregate expression of each column."
    )
    groups: dict[str, AggregationGroup] = Declared(min_length=1, description="The groups by name.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, group in self.groups.items():
            if unknown := [each for each in group.aggregations if each not in self.aggregations]:
                raise ValueError(f"group {name!r} names the unknown aggregation {unknown[0]!r}")
        return self

    def outputs(self) -> tuple[str, ...]:
        """Return the names of the groups."""
        return tuple(self.groups)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the rows of the group `main`, the only one that is read without its name."""
        return self._grouped(frame, MAIN)

    def transform_output(self, workspace: Workspace, name: str) -> DataFrame:
        """Return the dimensions and aggregations of one group."""
        return self._grouped(workspace.frame(self.input), name)

    def _grouped(self, frame: DataFrame, name: str) -> DataFrame:
        group = self.groups[name]
        frame = frame if group.filter is None else frame.where(group.filter)
        chosen: Sequence[str] = group.aggregations or tuple(self.aggregations)
        computed = [functions.expr(self.aggregations[each]).alias(each) for each in chosen]
        found = frame.groupBy(*map(functions.expr, group.dimensions)).agg(*computed)
        return found if group.having is None else found.where(group.having)
