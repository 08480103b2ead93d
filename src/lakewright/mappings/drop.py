"""The `drop` mapping: its input without some columns."""

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
    """Leaves out columns; one that the input hasn't is no error."""

    columns: Texts = Declared(description="Columns to leave out.")

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the remaining columns, in their order."""
        del workspace
        return frame.drop(*self.columns)
