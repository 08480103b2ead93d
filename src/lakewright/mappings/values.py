"""The `values` mapping: literal rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.lake.columns import frame_of_records
from lakewright.mappings.literal import LiteralMapping
from lakewright.spec.models.base import Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["ValuesMapping"]


class ValuesMapping(LiteralMapping):
    """Returns its records with the columns of `columns` or `schema`.

    A value that does not fit its type is an error: 1.5 is no `int`, and a `date` has no time.
    """

    records: Rows = Declared(
        default_factory=list, description="Rows: lists of values, or maps of column to value."
    )

    def transform(self, workspace: Workspace) -> DataFrame:
        """Return the records."""
        return frame_of_records(workspace.spark, self.fields(workspace), self.records)
