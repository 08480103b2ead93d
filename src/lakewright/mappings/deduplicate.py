"""The `deduplicate` mapping: one row per key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.mappings.mapping import ColumnName, InputMapping, NamedColumn
from lakewright.spec.models.base import Listed
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["DeduplicateMapping"]


class DeduplicateMapping(InputMapping):
    """Returns one arbitrary row for each combination of values in `columns`."""

    columns: Listed[ColumnName] = Declared(
        default=(), description="Columns that identify duplicates; default: all."
    )

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the columns that identify duplicates."""
        return self.named("columns", self.columns)

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the input's columns."""
        return columns_of(self.input)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return one row per key, with all columns."""
        return frame.dropDuplicates(list(self.columns)) if self.columns else frame.dropDuplicates()
