"""The `sort` mapping: sorts rows; useful as the last step before writing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field as Declared

from lakewright.mappings.mapping import InputMapping
from lakewright.spec.models.base import Listed, from_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["SortMapping"]


Direction = Annotated[Literal["asc", "desc"], from_text(str.lower)]


class SortMapping(InputMapping):
    """Sorts by columns, each `asc` or `desc`."""

    columns: Listed[dict[str, Direction]] = Declared(
        description="Columns with their direction, most significant first."
    )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the sorted rows; nulls come first in ascending order and last in descending order."""
        from pyspark.sql import functions

        del workspace
        order = [(name, direction) for entry in self.columns for name, direction in entry.items()]
        return frame.orderBy(
            *(
                functions.asc(name) if direction == "asc" else functions.desc(name)
                for name, direction in order
            )
        )
