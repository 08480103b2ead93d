"""The `count` target: counts the rows of a mapping."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field as Declared

from lakewright.mappings.mapping import Input
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.spec.words import counted
from lakewright.targets.context import Context
from lakewright.targets.mapping_reader import MappingReader

__all__ = ["CountTarget"]


class CountTarget(MappingReader):
    """Counts the rows in BUILD, and prints the number."""

    feeds_others: ClassVar[bool] = False

    mapping: Input = Declared(description="Mapping whose rows to count.")

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Count the rows and print the number."""
        rows = context.workspace.frame(self.mapping).count()
        context.say(f"{self.mapping}: {counted(rows, 'row')}")
        return Outcome(metrics={"records": rows})
