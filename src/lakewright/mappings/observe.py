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
    """Returns its input; the first target that writes it reports the measures as metrics of its own.

    Targets that write rows are those of the kinds `relation`, `file`, `merge`, `copy`, `local` and
    `blackhole`. A measure may be of any type, but only numbers are published as metrics: others are in the
    report and the result, times as ISO 8601 and bytes in hexadecimal digits.
    """

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
