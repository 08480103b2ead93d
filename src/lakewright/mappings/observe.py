"""The `observe` mapping: its input, and measures of the rows that a target writes from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.mappings.mapping import InputMapping

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["ObserveMapping"]


class ObserveMapping(InputMapping):
    """Returns its input; a target that writes it reports the measures as metrics of its own."""

    measures: dict[str, str] = Declared(
        min_length=1, description="SQL aggregate expression of each metric, such as `count(*)`."
    )

    def apply(self, frame: DataFrame, workspace: Workspace) -> DataFrame:
        """Return the input, whose rows are measured when they are written."""
        from pyspark.sql import Observation, functions

        observation = Observation()
        measures = [functions.expr(text).alias(name) for name, text in self.measures.items()]
        found = frame.observe(observation, *measures)
        workspace.observations[self.name] = observation
        return found
