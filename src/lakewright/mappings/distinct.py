"""The `distinct` mapping: removes duplicate rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakewright.mappings.mapping import InputMapping
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["DistinctMapping"]


class DistinctMapping(InputMapping):
    """Returns each distinct row of its input once."""

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the input's columns."""
        return columns_of(self.input)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the distinct rows."""
        return frame.distinct()
