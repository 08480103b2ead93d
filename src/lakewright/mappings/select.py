"""The `select` mapping: exactly the listed columns, each defined by a SQL expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.mappings.mapping import InputMapping

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["SelectMapping"]


class SelectMapping(InputMapping):
    """Returns one column per entry of `columns`, in their order."""

    columns: dict[str, str] = Declared(description="SQL expression of each column of the result.")

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return only the declared columns."""
        from pyspark.sql import functions

        del workspace
        return frame.select(*(functions.expr(text).alias(name) for name, text in self.columns.items()))
