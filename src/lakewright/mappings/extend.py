"""The `extend` mapping: adds columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Annotated

from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.mappings.mapping import InputMapping
from lakewright.spec.models.text_marks import SqlText
from lakewright.workspace.sql_check import ColumnsOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["ExtendMapping"]


class ExtendMapping(InputMapping):
    """Adds a column for each entry of `columns`, or replaces the column of that name.

    Expressions may use each other's results; they are evaluated in dependency order.
    """

    columns: Annotated[dict[str, str], SqlText.EXPRESSION] = Declared(
        default_factory=dict, description="SQL expression for each new column."
    )

    def declared_columns(self, workspace: Workspace, columns_of: ColumnsOf) -> Sequence[str] | None:
        """Return the input's columns and the new ones."""
        found = columns_of(self.input)
        return None if found is None else tuple(dict.fromkeys((*found, *self.columns)))

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the input's columns, with replaced columns in their place and new ones at the end."""
        from pyspark.sql import functions

        for name in self.order():
            frame = frame.withColumn(name, functions.expr(self.columns[name]))
        return frame

    def order(self) -> tuple[str, ...]:
        """Return the new columns, each after those that its expression uses.

        Raises:
            SpecError: Expressions depend on each other in a cycle.
        """
        uses = {name: self._uses(name) for name in self.columns}
        try:
            return tuple(TopologicalSorter(uses).static_order())
        except CycleError as cycle:
            chain = " -> ".join(cycle.args[1])
            raise SpecError.of(
                f"columns of mapping {self.name!r} depend on each other: {chain}",
                remedy="Compute one of them in an earlier mapping.",
            ) from cycle

    def _uses(self, name: str) -> list[str]:
        words = {word.lower() for word in re.findall(r"\w+", self.columns[name])}
        return [other for other in self.columns if other != name and other.lower() in words]
