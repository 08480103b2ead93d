"""The `cast` mapping: changes the types of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.lake.columns import cast_by_name, column, find_column
from lakewright.mappings.mapping import InputMapping
from lakewright.spec.models.fields import TypeText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["CastMapping"]


class CastMapping(InputMapping):
    """Changes the types of columns; names, order and other columns are kept."""

    columns: dict[str, TypeText] = Declared(description="New type of each column to change.")

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return all columns, with new types for those in `columns`."""
        del workspace
        types = {find_column(frame, name): found for name, found in self.columns.items()}
        return frame.select(
            *(
                cast_by_name(frame, name, types[name]).alias(name) if name in types else column(name)
                for name in frame.columns
            )
        )
