"""Rows that a run replaces and then builds again itself: a plan does not warn of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.plan.phase import Phase
from lakewright.plan.status import Planned
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
        if step.phase is not Phase.BUILD:
            return step
        lost, added = None if built in quiet else step.lost, None if built in again else step.added
        return replace(step, lost=lost, added=added)

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
    return step.lost is not None and step.lost.fault.code == REPLACED_ROWS


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
    for each in () if step.lost is None else step.lost.builds:
        yield each.target, tuple(sorted(each.parameters.items()))
