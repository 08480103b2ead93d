"""The `drop` mapping: removes columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.mappings.mapping import InputMapping
from lakewright.spec.models.base import Texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["DropMapping"]


class DropMapping(InputMapping):
    """Removes columns; columns that the input does not have are ignored."""

    columns: Texts = Declared(description="Columns to remove.")

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the remaining columns in their order."""
        del workspace
        return frame.drop(*self.columns)
