"""The `empty` mapping: no rows, with declared columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.lake.columns import frame_of_records
from lakewright.mappings.literal import LiteralMapping

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["EmptyMapping"]


class EmptyMapping(LiteralMapping):
    """Returns no rows, with the declared columns."""

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return a frame without rows."""
        return frame_of_records(workspace.spark, self.fields(workspace), [])
