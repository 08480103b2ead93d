"""The `distinct` mapping: removes duplicate rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.mappings.mapping import InputMapping

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["DistinctMapping"]


class DistinctMapping(InputMapping):
    """Returns each distinct row of its input once."""

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the distinct rows."""
        del workspace
        return frame.distinct()
