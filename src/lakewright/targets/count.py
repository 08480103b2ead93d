"""The `count` target: counts the rows of a mapping."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.mappings.mapping import Input
from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.observation import Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.spec.models.base import Reference
from lakewright.spec.words import counted
from lakewright.targets.context import Context
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["CountTarget"]


class CountTarget(Target):
    """Counts the rows in BUILD, and prints the number."""

    mapping: Input = Declared(description="Mapping whose rows to count.")

    def references(self) -> Iterable[Reference]:
        """Return the mapping."""
        return [Reference("mapping", self.mapping, ("mapping",))]

    def phases(self) -> frozenset[Phase]:
        """Return BUILD."""
        return frozenset({Phase.BUILD})

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that the mapping reads."""
        del phase
        return workspace.required(self.mapping)

    def build_dirtiness(self, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return that the target always runs."""
        del observation, defaults
        return Dirtiness.yes("a count target always runs")

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Count the rows and print the number."""
        del phase
        rows = context.workspace.frame(self.mapping).count()
        context.say(f"{self.mapping}: {counted(rows, 'row')}")
        return Outcome(metrics={"records": rows})
