"""The `filter` mapping: keeps the rows that satisfy a condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field as Declared

from lakewright.mappings.mapping import InputMapping
from lakewright.spec.models.text_marks import SqlText
from lakewright.workspace.query import all_rows
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["FilterMapping"]


class FilterMapping(InputMapping):
    """Keeps the rows for which a SQL condition is true."""

    condition: Annotated[str, SqlText.CONDITION] = Declared(
        description="SQL condition that rows must satisfy."
    )

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the input's columns."""
        return columns_of(self.input)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the rows that satisfy the condition."""
        return frame.where(self.condition)

    def plain_sql(self, workspace: Workspace) -> str:
        """Return the input's query with the condition."""
        return all_rows(f"({workspace.sql_text(self.input)})", self.condition)
