"""Which steps of a plan may run at once: those that nothing orders and that share nothing that is written.

Two steps that touch the same resource, one of them writing, end one after the other as they stand in the
plan, be they of one instance or of two. So running steps side by side comes to what running them one by one
would. Phases follow each other within an instance; a phase that is for the first or the last instance alone
is a barrier for the others.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles"; barriers between instances are Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.plan.resource_index import ResourceIndex
from lakewright.plan.status import Planned
from lakewright.plan.step import Plan, Step, StepKey
from lakewright.spec.models.job import Execution

__all__ = ["PhaseEnd", "step_dependencies"]

_PHASES = list(Phase)
_CHECKING = (Phase.VALIDATE, Phase.VERIFY)


@dataclass(frozen=True, slots=True)
class PhaseEnd:
    """Passed once every step of a phase of an instance has ended, and every phase before it."""

    instance: int
    phase: Phase


def step_dependencies(
    plan: Plan, executions: Sequence[Execution] = ()
) -> Mapping[StepKey | PhaseEnd, set[StepKey | PhaseEnd]]:
    """Return, for each step and gate of a plan, what must have ended before it; there is no cycle in it."""
    before: dict[StepKey | PhaseEnd, set[StepKey | PhaseEnd]] = {}
    passed: list[list[PhaseEnd]] = []
    for index, instance in enumerate(plan.instances):
        passed.append([])
        for phase in instance.phases:
            is_last = index == len(plan.instances) - 1
            start = {*passed[-1][-1:], *_barriers(phase.phase, passed, executions, is_last=is_last)}
            keys = {step.target: (index, phase.phase, step.target) for step in phase.steps}
            for name, key in keys.items():
                before[key] = start | {keys[other] for other in phase.predecessors.get(name, ())}
            gate = PhaseEnd(index, phase.phase)
            before[gate] = start | set(keys.values())
            passed[-1].append(gate)
    _add_conflicts(before, plan)
    return before


def _barriers(
    phase: Phase, passed: Sequence[Sequence[PhaseEnd]], executions: Sequence[Execution], *, is_last: bool
) -> Iterator[PhaseEnd]:
    """Yield the gates of other instances that a phase of the last instance in `passed` waits for."""
    if len(passed) == 1:
        return
    first = {entry.phase for entry in executions if entry.cycle == "first"}
    yield from (
        gate for gate in passed[0] if gate.phase in first and _PHASES.index(gate.phase) < _PHASES.index(phase)
    )
    if is_last and any(entry.cycle == "last" and entry.phase == phase for entry in executions):
        yield from (gates[-1] for gates in passed[:-1] if gates)


@dataclass(slots=True)
class _Access:
    """The steps that a later one must wait for if it touches a resource."""

    writer: StepKey | None = None
    readers: list[StepKey] = field(default_factory=list)


def _add_conflicts(before: dict[StepKey | PhaseEnd, set[StepKey | PhaseEnd]], plan: Plan) -> None:
    accesses: dict[Resource, _Access] = {}
    index: ResourceIndex[_Access] = ResourceIndex()
    for instance, step in _numbered(plan):
        key = (instance, step.phase, step.target)
        if step.relies_on is not None:
            before[key].add(step.relies_on)
        if step.status is not Planned.WOULD_RUN:
            continue
        written = _written(step)
        for resource in written:
            for access in index.touching(resource):
                before[key].update(access.readers, (access.writer,) if access.writer else ())
        for resource in step.requires:
            before[key].update(access.writer for access in index.touching(resource) if access.writer)
        for resource in written | step.requires:
            if resource not in accesses:
                accesses[resource] = _Access()
                index.add(resource, accesses[resource])
        for resource in written:
            # Whoever comes later waits for this step, which has waited for those before it.
            accesses[resource].writer = key
            accesses[resource].readers.clear()
        for resource in step.requires - written:
            accesses[resource].readers.append(key)


def _numbered(plan: Plan) -> Iterator[tuple[int, Step]]:
    for index, instance in enumerate(plan.instances):
        for phase in instance.phases:
            yield from ((index, step) for step in phase.steps)


def _written(step: Step) -> frozenset[Resource]:
    """Return what a step writes; one that doesn't tell is taken to write something of its own target's."""
    if step.provides or step.phase in _CHECKING:
        return step.provides
    return frozenset({Resource("target", step.target)})
