"""Rows that a run replaces and then builds again itself: a plan does not warn of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.plan.phase import Phase
from lakewright.plan.status import Planned
from lakewright.run.added_before import ADDED_BEFORE
from lakewright.run.losses import REPLACED_ROWS

if TYPE_CHECKING:
    from lakewright.plan.step import Plan, Step
    from lakewright.run.build_history import Instance

__all__ = ["without_rebuilt"]


def without_rebuilt(plan: Plan) -> Plan:
    """Return a plan without warnings of rows that a step replaces and a later one builds again.

    The later step is not warned that it adds its rows once more: those of before are gone by then.
    """
    if not any(map(_is_replacing, plan.steps())):
        return plan
    position = {built: number for number, (built, _) in enumerate(_builds(plan))}
    again: set[Instance] = set()
    quiet: set[Instance] = set()
    for built, step in _builds(plan):
        lost = set(_lost(step)) if _is_replacing(step) else set()
        later = {each for each in lost if position.get(each, -1) > position[built]}
        again |= later
        if lost and later == lost:
            quiet.add(built)

    def told(step: Step, parameters: Mapping[str, str]) -> Step:
        built = (step.target, tuple(sorted(parameters.items())))
        if step.warning is None or step.phase is not Phase.BUILD:
            return step
        is_added = step.warning.code == ADDED_BEFORE and built in again
        return replace(step, warning=None) if built in quiet or is_added else step

    instances = tuple(
        replace(
            instance,
            phases=tuple(
                replace(phase, steps=tuple(told(step, dict(instance.parameters)) for step in phase.steps))
                for phase in instance.phases
            ),
        )
        for instance in plan.instances
    )
    return replace(plan, instances=instances)


def _is_replacing(step: Step) -> bool:
    return step.warning is not None and step.warning.code == REPLACED_ROWS


def _builds(plan: Plan) -> Iterator[tuple[Instance, Step]]:
    """Yield the builds of a plan in their order."""
    for instance in plan.instances:
        key = tuple(sorted(dict(instance.parameters).items()))
        for phase in instance.phases:
            for step in phase.steps:
                if step.phase is Phase.BUILD and step.status is Planned.WOULD_RUN:
                    yield (step.target, key), step


def _lost(step: Step) -> Iterator[Instance]:
    """Yield what a step replaces."""
    details = {} if step.warning is None else step.warning.details
    for name, parameters, _, _ in details.get("lost", ()):
        yield name, tuple(sorted(parameters.items()))
