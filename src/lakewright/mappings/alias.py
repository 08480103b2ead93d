"""The `alias` mapping: another name for a mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.mappings.mapping import InputMapping

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["AliasMapping"]


class AliasMapping(InputMapping):
    """Returns its input unchanged."""

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the input unchanged."""
        return frame

    def plain_sql(self, workspace: Workspace) -> str:
        """Return the input's query."""
        return workspace.sql_text(self.input)
