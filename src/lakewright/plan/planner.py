"""Observations in, one Plan out: who is active, in which order, dirty or clean, and why.

Each step that would run changes what later steps find. The plan follows that by carrying forward what each
subject is expected to be like, so that it says for all instances what a run would do.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" and "Dirtiness".
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakewright.plan.candidate import Candidate, Instance
from lakewright.plan.executions import active_patterns
from lakewright.plan.expectations import Expectations
from lakewright.plan.graph import Graph, build_graph
from lakewright.plan.phase import Phase
from lakewright.plan.status import NOT_REACHED, Planned
from lakewright.plan.step import InstancePlan, PhasePlan, Plan, Step, StepKey
from lakewright.spec.models.job import Execution

__all__ = ["PlanRequest", "build_plan"]

_TAINTING = (Phase.CREATE, Phase.BUILD)


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What the caller asked for.

    Attributes:
        targets: Only these targets; None for all.
        dirty: Targets to run though they are clean.
        only: Exactly these steps, for `--resume`; None for all.
        keep_going: Whether what doesn't depend on something blocked runs after it.
    """

    phases: tuple[Phase, ...]
    executions: tuple[Execution, ...] = ()
    targets: frozenset[str] | None = None
    dirty: tuple[re.Pattern[str], ...] = ()
    is_forced: bool = False
    only: Container[StepKey] | None = None
    keep_going: bool = False


def build_plan(
    project: str, job: str, instances: Iterable[Instance], selection: PlanRequest, *, count: int
) -> Plan:
    """Return what running `job` would do.

    Args:
        project: Its name.
        job: Its name.
        instances: One after the other; none is asked for again once the next one has been.
        selection: What the caller asked for.
        count: How many instances there are.

    Raises:
        SpecError: The targets form a cycle.
    """
    planner = _Planner(selection, count)
    planned = tuple(planner.instance(index, instance) for index, instance in enumerate(instances))
    return Plan(project, job, selection.phases[-1], planned)


@dataclass(slots=True)
class _Planner:
    """A plan while it is made.

    Attributes:
        expected: What will be found once the steps planned so far have run.
        obstacle: Why nothing of later phases and instances will be reached, once something is blocked.
    """

    selection: PlanRequest
    count: int
    expected: Expectations = field(default_factory=Expectations)
    obstacle: str | None = None

    def instance(self, index: int, instance: Instance) -> InstancePlan:
        turn = _Turn(self, index, instance)
        planned = [turn.phase(phase) for phase in self.selection.phases]
        return InstancePlan(instance.parameters, tuple(phase for phase in planned if phase is not None))


@dataclass(slots=True)
class _Turn:
    """One instance while it is planned.

    Attributes:
        blocked: Targets that are blocked, with the first phase in which they are.
    """

    planner: _Planner
    index: int
    of: Instance
    blocked: dict[str, Phase] = field(default_factory=dict)

    def phase(self, phase: Phase) -> PhasePlan | None:
        selection, count = self.planner.selection, self.planner.count
        patterns = active_patterns(selection.executions, phase, index=self.index, count=count)
        if not patterns:
            return None
        takes_part = [candidate for candidate in self.of.candidates if phase in candidate.nodes]
        graph = build_graph([candidate.nodes[phase] for candidate in takes_part], phase)
        by_name = {candidate.name: candidate for candidate in takes_part}
        steps: dict[str, Step] = {}
        for name in graph.order:
            if self._is_selected(phase, name, patterns):
                steps[name] = self._step(phase, by_name[name], _upstream(steps, graph, name))
        self._note_blocked(phase, steps.values())
        note = None if steps else f"no target takes part in {phase}"
        return PhasePlan(phase, tuple(steps.values()), graph.sources, graph.nearest(steps.keys()), note)

    def _is_selected(self, phase: Phase, name: str, patterns: tuple[re.Pattern[str], ...]) -> bool:
        selection = self.planner.selection
        if selection.only is not None and (self.index, phase, name) not in selection.only:
            return False
        return _matches(name, patterns) and (selection.targets is None or name in selection.targets)

    def _note_blocked(self, phase: Phase, steps: Iterable[Step]) -> None:
        blocked = [step.target for step in steps if step.status is Planned.BLOCKED]
        for name in blocked:
            self.blocked.setdefault(name, phase)
        if blocked and not self.planner.selection.keep_going and self.planner.obstacle is None:
            self.planner.obstacle = f"{NOT_REACHED} while {blocked[0]} is blocked in {phase}"

    def _step(self, phase: Phase, candidate: Candidate, upstream: Sequence[Step]) -> Step:
        expected = self.planner.expected
        observation = expected.of(candidate)
        step = Step(phase, candidate.name, candidate.kind, Planned.BLOCKED, ())
        if self.planner.obstacle is None:
            if blocked := self._blocked(candidate.name, upstream):
                return replace(step, reasons=blocked)
            if phase is Phase.BUILD and observation.hold is not None and not observation.pending:
                return replace(step, reasons=(observation.hold.message,), hold=observation.hold)
        own = candidate.dirtiness(phase, observation)
        forced = self._forced(phase, candidate, upstream)
        if not own.is_to_run and not forced:
            relies_on = expected.relied_on(phase, candidate)
            return replace(step, status=Planned.CLEAN, reasons=own.reasons, relies_on=relies_on)
        if self.planner.obstacle is not None:
            return replace(step, reasons=(self.planner.obstacle,))
        expected.add((self.index, phase, candidate.name), candidate)
        return replace(
            step,
            status=Planned.WOULD_RUN,
            reasons=(*(own.reasons if own.is_to_run else ()), *forced),
            changes=observation.changes if phase is Phase.CREATE else (),
            requires=candidate.nodes[phase].requires,
            provides=candidate.nodes[phase].provides,
            is_remembered=not own.is_to_run,
        )

    def _blocked(self, name: str, upstream: Iterable[Step]) -> tuple[str, ...]:
        """Return why a target can't run: it was blocked before, or what it depends on is."""
        own = (f"its {self.blocked[name]} is blocked",) if name in self.blocked else ()
        others = (f"{step.target} is blocked" for step in upstream if step.status is Planned.BLOCKED)
        return (*own, *others)

    def _forced(self, phase: Phase, candidate: Candidate, upstream: Iterable[Step]) -> tuple[str, ...]:
        """Return why a target must run whatever is found."""
        selection = self.planner.selection
        reasons: list[str] = []
        if selection.is_forced:
            reasons.append("--force")
        if _matches(candidate.name, selection.dirty):
            reasons.append("--dirty")
        if phase in candidate.unfinished:
            reasons.append(candidate.unfinished[phase])
        if phase in _TAINTING:
            ran = (step.target for step in upstream if step.status is Planned.WOULD_RUN)
            reasons.extend(f"tainted by {name}" for name in ran)
        return tuple(reasons)


def _upstream(steps: Mapping[str, Step], graph: Graph, name: str) -> list[Step]:
    found = graph.sources[name] & steps.keys()
    return [step for other, step in steps.items() if other in found] if found else []


def _matches(name: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)
