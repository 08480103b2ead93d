"""The `blackhole` target: computes the rows of a mapping and keeps none."""

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
from lakewright.targets.context import Context
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.target import Target
from lakewright.targets.writing import observed_measures

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["BlackholeTarget"]


class BlackholeTarget(Target):
    """Computes every row of a mapping in BUILD and keeps none, to check it or to measure it."""

    mapping: Input = Declared(description="Mapping whose rows to compute.")

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
        return Dirtiness.yes("a blackhole target always runs")

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Compute the rows."""
        del phase
        context.workspace.frame(self.mapping).write.format("noop").mode("overwrite").save()
        return Outcome(metrics=observed_measures(context.workspace, self.mapping))
