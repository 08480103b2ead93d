"""The `stack` mapping: turns columns into rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.lake.columns import column
from lakewright.mappings.mapping import ColumnName, InputMapping, NamedColumn
from lakewright.spec.models.base import Listed
from lakewright.transform.steps import find_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["StackMapping"]


class StackMapping(InputMapping):
    """Returns a row per stacked column with its label, its value and the kept columns."""

    name_column: str = Declared(description="New column for the label of the stacked column.")
    value_column: str = Declared(description="New column for its value.")
    stack_columns: dict[str, str] = Declared(
        min_length=1, description="Columns to stack, each with its label."
    )
    drop_nulls: bool = Declared(default=False, description="Remove rows whose value is null.")
    keep_columns: Listed[ColumnName] = Declared(
        default=(), description="Columns to keep; default: all others."
    )
    drop_columns: Listed[ColumnName] = Declared(default=(), description="Columns to remove.")

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the columns to stack, to keep and to remove."""
        return (
            *self.named("stackColumns", self.stack_columns),
            *self.named("keepColumns", self.keep_columns),
            *self.named("dropColumns", self.drop_columns),
        )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the kept columns, followed by label and value."""
        from pyspark.sql import functions

        self.note_absent(workspace, self.drop_columns, frame.columns, use=" to drop")
        stacked = {
            find_name(frame.columns, name) or name: label for name, label in self.stack_columns.items()
        }
        kept = self.keep_columns or tuple(name for name in frame.columns if name not in stacked)
        kept = tuple(
            name for name in kept if name.lower() not in {drop.lower() for drop in self.drop_columns}
        )
        pairs = [
            functions.struct(
                functions.lit(label).alias(self.name_column), column(name).alias(self.value_column)
            )
            for name, label in stacked.items()
        ]
        rows = frame.select(*map(column, kept), functions.inline(functions.array(*pairs)))
        return rows.where(column(self.value_column).isNotNull()) if self.drop_nulls else rows
