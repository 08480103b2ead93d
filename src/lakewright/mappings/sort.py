"""The `sort` mapping: sorts rows; useful as the last step before writing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field as Declared

from lakewright.mappings.mapping import InputMapping, NamedColumn
from lakewright.spec.models.base import Listed, from_text
from lakewright.workspace.sql_check import ColumnsOf

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

    def named_columns(self) -> Iterable[NamedColumn]:
        """Return the columns to sort by."""
        return self.named("columns", [name for entry in self.columns for name in entry])

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the input's columns."""
        return columns_of(self.input)

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the sorted rows; nulls come first in ascending order and last in descending order."""
        from pyspark.sql import functions

        order = [(name, direction) for entry in self.columns for name, direction in entry.items()]
        return frame.orderBy(
            *(
                functions.asc(name) if direction == "asc" else functions.desc(name)
                for name, direction in order
            )
        )
