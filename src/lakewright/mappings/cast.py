"""The `cast` mapping: changes the types of columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.lake.columns import cast_by_name, column
from lakewright.mappings.mapping import InputMapping, NamedColumn
from lakewright.spec.models.fields import TypeText
from lakewright.transform.steps import find_name
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["CastMapping"]


class CastMapping(InputMapping):
    """Changes the types of columns; names, order and other columns are kept.

    The run warns of columns that the input does not have.
    """

    columns: dict[str, TypeText] = Declared(description="New type of each column to change.")

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the columns to change."""
        return self.named("columns", self.columns)

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the input's columns."""
        return columns_of(self.input)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return all columns, with new types for those in `columns`."""
        self.note_absent(workspace, self.columns, frame.columns, use=" to cast")
        types = {find_name(frame.columns, name): found for name, found in self.columns.items()}
        return frame.select(
            *(
                cast_by_name(frame, name, types[name]).alias(name) if name in types else column(name)
                for name in frame.columns
            )
        )
