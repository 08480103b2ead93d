"""The `select` mapping: exactly the columns that are written, each a SQL expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.mappings.mapping import InputMapping

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["SelectMapping"]


class SelectMapping(InputMapping):
    """Gives one column for each entry of `columns`, in their order."""

    columns: dict[str, str] = Declared(description="SQL expression for each column of the result.")

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the declared columns only."""
        from pyspark.sql import functions

        del workspace
        return frame.select(*(functions.expr(text).alias(name) for name, text in self.columns.items()))
