"""The `latest` and `earliest` mappings: the newest or oldest row of each key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.lake.columns import column
from lakewright.mappings.mapping import ColumnName, InputMapping, NamedColumn
from lakewright.spec.models.base import Listed
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["EarliestMapping", "LatestMapping"]

_POSITION = "__position"


class LatestMapping(InputMapping):
    """Keeps the row with the greatest version of each key; a null version is the smallest."""

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

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the input's columns."""
        return columns_of(self.input)

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
