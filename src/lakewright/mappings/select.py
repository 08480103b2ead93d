"""The `select` mapping: exactly the listed columns, each defined by a SQL expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field as Declared

from lakewright.mappings.mapping import InputMapping
from lakewright.spec.models.text_marks import SqlText
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["SelectMapping"]


class SelectMapping(InputMapping):
    """Returns one column per entry of `columns`, in their order."""

    columns: Annotated[dict[str, str], SqlText.EXPRESSION] = Declared(
        description="SQL expression of each column of the result."
    )

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the names of the declared columns."""
        return tuple(self.columns)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return only the declared columns."""
        from pyspark.sql import functions

        return frame.select(*(functions.expr(text).alias(name) for name, text in self.columns.items()))
