"""The `deduplicate` mapping: one row per key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.mappings.mapping import InputMapping
from lakewright.spec.models.base import Texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["DeduplicateMapping"]


class DeduplicateMapping(InputMapping):
    """Returns one arbitrary row for each combination of values in `columns`."""

    columns: Texts = Declared(default=(), description="Columns that identify duplicates; default: all.")

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return one row per key, with all columns."""
        del workspace
        return frame.dropDuplicates(list(self.columns)) if self.columns else frame.dropDuplicates()
