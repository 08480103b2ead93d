"""The `measure` target: measures the results of the build, and records the numbers as metrics of the run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field as Declared

from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.spec.models.base import KindOf, NamedMap, Reference
from lakewright.targets.context import Context
from lakewright.targets.measures.measure import Measure, Measurement
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["MeasureTarget"]


class MeasureTarget(Target):
    """Takes measures in VERIFY; each measure returns metrics."""

    feeds_others: ClassVar[bool] = False

    measures: NamedMap[Annotated[Measure, KindOf("measure")]] = Declared(
        description="Measures to take, by name."
    )

    def references(self) -> Iterable[Reference]:
        """Return what the measures refer to."""
        return [
            Reference(each.category, each.name, ("measures", name, *each.path))
            for name, measure in self.measures.items()
            for each in measure.references()
        ]

    def phases(self) -> frozenset[Phase]:
        """Return VERIFY."""
        return frozenset({Phase.VERIFY})

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that the measures read."""
        return frozenset().union(*(measure.requires(workspace) for measure in self.measures.values()))

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Take all measures."""
        taken: list[tuple[str, Measurement]] = []
        for name, measure in self.measures.items():
            with self.located(context.workspace, f"measure {name!r}", ("measures", name)):
                taken += [(name, found) for found in measure.take(context.workspace)]
        return Outcome(metrics=_metrics(taken))


def _metrics(taken: list[tuple[str, Measurement]]) -> dict[str, Any]:
    """Return a number for a metric that occurs once and has no labels, otherwise a list with labels."""
    metrics: dict[str, Any] = {}
    for name in dict.fromkeys(found.name for _, found in taken):
        same = [(measure, found) for measure, found in taken if found.name == name]
        if len(same) == 1 and not same[0][1].labels:
            metrics[name] = same[0][1].value
        else:
            metrics[name] = [
                {"value": found.value, "labels": {"measure": measure, **found.labels}}
                for measure, found in same
            ]
    return metrics
