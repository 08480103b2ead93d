"""The `historize` mapping: events of each key as versions with a beginning and an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator
from pydantic import Field as Declared

from lakewright.lake.columns import column
from lakewright.mappings.mapping import InputMapping
from lakewright.spec.models.base import Texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["HistorizeMapping"]


def _lower(declared: object) -> object:
    return declared.lower() if isinstance(declared, str) else declared


Position = Annotated[Literal["beginning", "end"], BeforeValidator(_lower)]


class HistorizeMapping(InputMapping):
    """Adds from when to when each row holds: from its own time to that of the key's next row.

    The last one's end is null. Rows of one key and time follow each other in no particular order.
    """

    key_columns: Texts = Declared(min_length=1, description="Columns that identify what has versions.")
    time_column: str = Declared(description="Column with the time of a row.")
    valid_from_column: str = Declared(default="valid_from", description="New column: the beginning.")
    valid_to_column: str = Declared(
        default="valid_to", description="New column: the end, excluded; null if open."
    )
    column_insert_position: Position = Declared(
        default="end", description="Where the new columns come: beginning or end."
    )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return all rows with the two new columns."""
        from pyspark.sql import Window, functions

        del workspace
        time = column(self.time_column)
        window = Window.partitionBy(*map(column, self.key_columns)).orderBy(time)
        new = [
            time.alias(self.valid_from_column),
            functions.lead(time).over(window).alias(self.valid_to_column),
        ]
        old = [column(name) for name in frame.columns]
        return frame.select(*([*new, *old] if self.column_insert_position == "beginning" else [*old, *new]))
