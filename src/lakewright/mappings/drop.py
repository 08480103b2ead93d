"""The `drop` mapping: removes columns."""

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

__all__ = ["DropMapping"]


class DropMapping(InputMapping):
    """Removes columns; the run warns of those that the input does not have."""

    columns: Listed[ColumnName] = Declared(description="Columns to remove.")

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the columns to remove."""
        return self.named("columns", self.columns)

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the input's columns without those that are removed."""
        found = columns_of(self.input)
        dropped = {name.lower() for name in self.columns}
        return None if found is None else tuple(name for name in found if name.lower() not in dropped)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the remaining columns in their order."""
        self.note_absent(workspace, self.columns, frame.columns, use=" to drop")
        return frame.drop(*self.columns)
