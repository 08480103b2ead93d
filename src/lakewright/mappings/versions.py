"""Mappings of rows with versions: the newest and the oldest of each key, and the interval of each version."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field as Declared

from lakewright.lake.columns import column
from lakewright.mappings.mapping import ColumnName, InputMapping, NamedColumn
from lakewright.spec.models.base import Listed, from_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["EarliestMapping", "HistorizeMapping", "LatestMapping"]


_POSITION = "__position"


class LatestMapping(InputMapping):
    """Keeps the row with the greatest version of each key; a null version is the smallest."""

    keeps_columns: ClassVar[bool] = True

    key_columns: Listed[ColumnName] = Declared(min_length=1, description="Columns that identify a key.")
    version_columns: Listed[ColumnName] = Declared(
        min_length=1, description="Columns that order the versions, most significant first."
    )

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the columns of the key and of the version."""
        return (
            *self.named("keyColumns", self.key_columns),
            *self.named("versionColumns", self.version_columns),
        )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return one row per key, with all columns."""
        from pyspark.sql import Window, functions

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

    The end of the last row is null. The order of rows with the same key and time is undefined.
    """

    key_columns: Listed[ColumnName] = Declared(min_length=1, description="Columns that identify a key.")
    time_column: ColumnName = Declared(description="Column with the time of a row.")
    valid_from_column: str = Declared(default="valid_from", description="New column: the beginning.")
    valid_to_column: str = Declared(
        default="valid_to", description="New column with the end, exclusive; null if open."
    )
    column_insert_position: Position = Declared(
        default="end", description="Position of the new columns: beginning or end."
    )

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the columns of the key, and the time."""
        return (
            *self.named("keyColumns", self.key_columns),
            NamedColumn(self.input, self.time_column, ("timeColumn",)),
        )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return all rows with the two new columns."""
        from pyspark.sql import Window, functions

        time = column(self.time_column)
        window = Window.partitionBy(*map(column, self.key_columns)).orderBy(time)
        new = [
            time.alias(self.valid_from_column),
            functions.lead(time).over(window).alias(self.valid_to_column),
        ]
        old = [column(name) for name in frame.columns]
        return frame.select(*([*new, *old] if self.column_insert_position == "beginning" else [*old, *new]))
