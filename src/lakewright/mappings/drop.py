"""The `drop` mapping: removes columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.lake.columns import find_column
from lakewright.mappings.mapping import InputMapping
from lakewright.spec.models.base import Texts
from lakewright.spec.suggestions import suggestion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["DropMapping"]


class DropMapping(InputMapping):
    """Removes columns; the run warns of those that the input does not have."""

    columns: Texts = Declared(description="Columns to remove.")

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the remaining columns in their order."""
        absent = [name for name in self.columns if find_column(frame, name) is None]
        if absent:
            asked = suggestion(absent[0], frame.columns)
            text = f"mapping {self.name!r}: its input has no column {', '.join(absent)} to drop; {asked}"
            workspace.notes[self.name] = lambda: text
        return frame.drop(*self.columns)
