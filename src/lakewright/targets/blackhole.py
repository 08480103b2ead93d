"""The `blackhole` target: computes the rows of a mapping and keeps none."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field as Declared

from lakewright.mappings.mapping import Input
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.targets.context import Context
from lakewright.targets.mapping_reader import MappingReader
from lakewright.targets.writing import observed_measures

__all__ = ["BlackholeTarget"]


class BlackholeTarget(MappingReader):
    """Computes every row of a mapping in BUILD and keeps none, to check it or to measure it."""

    feeds_others: ClassVar[bool] = False

    mapping: Input = Declared(description="Mapping whose rows to compute.")

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Compute the rows."""
        context.workspace.frame(self.mapping).write.format("noop").mode("overwrite").save()
        return Outcome(metrics=observed_measures(context.workspace, self.mapping))
