"""The dependencies between the steps of a plan, which decide the steps that may run in parallel.

If two steps access the same resource and one of them writes it, they run one after the other, in the order of
the plan, also across instances. A parallel run therefore has the same result as a sequential one. The phases
of an instance follow each other. If `executions` gives a phase to the first or the last instance only, that
phase separates it from the other instances.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles". The order between instances is Lakewright's own rule.
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

_PHASES = list(Phase)
_CHECKING = (Phase.VALIDATE, Phase.VERIFY)


@dataclass(frozen=True, slots=True)
class PhaseEnd:
    """The point at which all steps of a phase of an instance, and of its earlier phases, have ended."""

    instance: int
    phase: Phase


def step_dependencies(
    plan: Plan, executions: Sequence[Execution] = ()
) -> Mapping[StepKey | PhaseEnd, set[StepKey | PhaseEnd]]:
    """Return what must end before each step and phase end of a plan. The result has no cycles."""
    before: dict[StepKey | PhaseEnd, set[StepKey | PhaseEnd]] = {}
    passed: list[list[PhaseEnd]] = []
    for index, instance in enumerate(plan.instances):
        passed.append([])
        for phase in instance.phases:
            is_last = index == len(plan.instances) - 1
            start = {
                *passed[-1][-1:],
                *_ends_in_other_instances(phase.phase, passed, executions, is_last=is_last),
            }
            keys = {step.target: (index, phase.phase, step.target) for step in phase.steps}
            for name, key in keys.items():
                before[key] = start | {keys[other] for other in phase.predecessors.get(name, ())}
            end = PhaseEnd(index, phase.phase)
            before[end] = start | set(keys.values())
            passed[-1].append(end)
    _add_conflicts(before, plan)
    return before


def _ends_in_other_instances(
    phase: Phase, passed: Sequence[Sequence[PhaseEnd]], executions: Sequence[Execution], *, is_last: bool
) -> Iterator[PhaseEnd]:
    """Yield the phase ends of other instances that a phase of the last instance in `passed` waits for."""
    if len(passed) == 1:
        return
    first = {entry.phase for entry in executions if entry.cycle == "first"}
    yield from (
        end for end in passed[0] if end.phase in first and _PHASES.index(end.phase) < _PHASES.index(phase)
    )
    if is_last and any(entry.cycle == "last" and entry.phase == phase for entry in executions):
        yield from (ends[-1] for ends in passed[:-1] if ends)


@dataclass(slots=True)
class _Access:
    """The steps that a later step must wait for if it accesses a resource."""

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
            # A later step waits for this one, which has itself waited for the readers and writers before it.
            accesses[resource].writer = key
            accesses[resource].readers.clear()
        for resource in step.requires - written:
            accesses[resource].readers.append(key)


def _numbered(plan: Plan) -> Iterator[tuple[int, Step]]:
    for index, instance in enumerate(plan.instances):
        for phase in instance.phases:
            yield from ((index, step) for step in phase.steps)


def _written(step: Step) -> frozenset[Resource]:
    """Return the resources that a step writes; if it declares none, one that stands for its target."""
    if step.provides or step.phase in _CHECKING:
        return step.provides
    return frozenset({Resource("target", step.target)})
