"""The `latest` and `earliest` mappings: one row for each key, the newest or the oldest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.lake.columns import column
from lakewright.mappings.mapping import InputMapping
from lakewright.spec.models.base import Texts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["EarliestMapping", "LatestMapping"]

_POSITION = "__position"


class LatestMapping(InputMapping):
    """Keeps for each key the row with the greatest version; a null version is the least."""

    key_columns: Texts = Declared(min_length=1, description="Columns that identify what has versions.")
    version_columns: Texts = Declared(
        min_length=1, description="Columns that order the versions, first to last."
    )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return one row a key, with all columns."""
        from pyspark.sql import Window, functions

        del workspace
        window = Window.partitionBy(*map(column, self.key_columns)).orderBy(*self.order())
        numbered = frame.withColumn(_POSITION, functions.row_number().over(window))
        return numbered.where(column(_POSITION) == 1).drop(_POSITION)

    def order(self) -> list[Column]:
        """Return the order in which the wanted version comes first."""
        return [column(name).desc_nulls_last() for name in self.version_columns]


class EarliestMapping(LatestMapping):
    """Keeps for each key the row with the least version; a null version is the greatest."""

    def order(self) -> list[Column]:
        """Return the order in which the wanted version comes first."""
        return [column(name).asc_nulls_last() for name in self.version_columns]
