"""Observations in, one Plan out: who is active, in which order, dirty or clean, and why.

Each step that would run changes what later steps find. The plan follows that by carrying forward what each
subject is expected to be like, so that it says for all instances what a run would do.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" and "Dirtiness".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lakewright.plan.dirty import Dirtiness
from lakewright.plan.executions import active_patterns
from lakewright.plan.graph import Graph, Node, build_graph
from lakewright.plan.observation import Change, Observation
from lakewright.plan.phase import Phase
from lakewright.plan.select import Choice
from lakewright.plan.status import Planned
from lakewright.plan.step import InstancePlan, PhasePlan, Plan, Step
from lakewright.spec.job import Execution

__all__ = ["Candidate", "Instance", "Selection", "build_plan"]

_TAINTING = (Phase.CREATE, Phase.BUILD)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One target of one instance, observed.

    Attributes:
        nodes: Its place in each phase in which it takes part.
        dirty: Pure: whether it must run in a phase, given what is found then.
        leftover: Phases in which an earlier run left it undone, with the reason.
        labels: `key` and `key=value` of each of its labels.
    """

    name: str
    kind: str
    nodes: Mapping[Phase, Node]
    observation: Observation
    dirty: Callable[[Phase, Observation], Dirtiness]
    leftover: Mapping[Phase, str] = field(default_factory=dict)
    labels: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance of a job: its parameters as text, and its targets in the order written."""

    parameters: Mapping[str, str]
    candidates: tuple[Candidate, ...]

    def choices(self) -> tuple[Choice, ...]:
        """Return the targets for `select`; what one depends on in any phase of building counts."""
        phases = (Phase.VALIDATE, Phase.CREATE, Phase.BUILD, Phase.VERIFY)
        sources: dict[str, frozenset[str]] = {}
        for phase in phases:
            nodes = [each.nodes[phase] for each in self.candidates if phase in each.nodes]
            for name, found in build_graph(nodes, phase).sources.items():
                sources[name] = sources.get(name, frozenset()) | found
        return tuple(
            Choice(each.name, each.kind, each.labels, sources.get(each.name, frozenset()))
            for each in self.candidates
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """What the caller asked for.

    Attributes:
        targets: Only these targets; None for all.
        dirty: Targets to run though they are clean.
        only: Exactly these (instance, phase, target) steps, for `--resume`; None for all.
    """

    phases: tuple[Phase, ...]
    executions: tuple[Execution, ...] = ()
    targets: frozenset[str] | None = None
    dirty: tuple[re.Pattern[str], ...] = ()
    is_forced: bool = False
    only: frozenset[tuple[int, Phase, str]] | None = None


def build_plan(project: str, job: str, instances: Sequence[Instance], selection: Selection) -> Plan:
    """Return what running `job` would do.

    Raises:
        SpecError: The targets form a cycle.
    """
    expected: dict[str, Observation] = {}
    planned = tuple(
        InstancePlan(
            instance.parameters,
            tuple(
                plan
                for phase in selection.phases
                if (
                    plan := _plan_phase(
                        _Turn(instance, index, len(instances), phase, selection),
                        expected,
                    )
                )
            ),
        )
        for index, instance in enumerate(instances)
    )
    return Plan(project, job, selection.phases[-1], planned)


@dataclass(frozen=True, slots=True)
class _Turn:
    instance: Instance
    index: int
    count: int
    phase: Phase
    selection: Selection

    def is_selected(self, name: str, patterns: tuple[re.Pattern[str], ...]) -> bool:
        only = self.selection.only
        if only is not None and (self.index, self.phase, name) not in only:
            return False
        chosen = self.selection.targets
        return _matches(name, patterns) and (chosen is None or name in chosen)


def _plan_phase(turn: _Turn, expected: dict[str, Observation]) -> PhasePlan | None:
    phase = turn.phase
    patterns = active_patterns(turn.selection.executions, phase, index=turn.index, count=turn.count)
    if not patterns:
        return None
    takes_part = [candidate for candidate in turn.instance.candidates if phase in candidate.nodes]
    graph = build_graph([candidate.nodes[phase] for candidate in takes_part], phase)
    by_name = {candidate.name: candidate for candidate in takes_part}
    steps: list[Step] = []
    for name in graph.order:
        if turn.is_selected(name, patterns):
            steps.append(_plan_step(turn, by_name[name], _upstream(steps, graph, name), expected))
    note = None if steps else f"no target takes part in {phase}"
    predecessors = {step.target: graph.ancestors(step.target) for step in steps}
    return PhasePlan(phase, tuple(steps), graph.sources, predecessors, note)


def _upstream(steps: Sequence[Step], graph: Graph, name: str) -> list[Step]:
    return [step for step in steps if step.target in graph.sources[name]]


def _plan_step(
    turn: _Turn,
    candidate: Candidate,
    upstream: Sequence[Step],
    expected: dict[str, Observation],
) -> Step:
    phase = turn.phase
    observation = expected.get(candidate.observation.subject, candidate.observation)
    dirtiness = _dirtiness(turn, candidate, observation, upstream)
    blocked = [step.target for step in upstream if step.status is Planned.BLOCKED]
    if blocked:
        return _step(
            phase,
            candidate,
            Planned.BLOCKED,
            tuple(f"{name} is blocked" for name in blocked),
        )
    if phase is Phase.BUILD and observation.hold is not None and not observation.pending:
        hold = observation.hold
        return Step(
            phase,
            candidate.name,
            candidate.kind,
            Planned.BLOCKED,
            (hold.message,),
            hold,
        )
    if not dirtiness.is_to_run:
        return _step(phase, candidate, Planned.CLEAN, dirtiness.reasons)
    expected[observation.subject] = observation.after(phase)
    changes = observation.changes if phase is Phase.CREATE else ()
    return _step(phase, candidate, Planned.WOULD_RUN, dirtiness.reasons, changes)


def _step(
    phase: Phase,
    candidate: Candidate,
    status: Planned,
    reasons: tuple[str, ...],
    changes: tuple[Change, ...] = (),
) -> Step:
    return Step(phase, candidate.name, candidate.kind, status, reasons, changes=changes)


def _dirtiness(
    turn: _Turn,
    candidate: Candidate,
    observation: Observation,
    upstream: Sequence[Step],
) -> Dirtiness:
    own = candidate.dirty(turn.phase, observation)
    forced: list[str] = []
    if turn.selection.is_forced:
        forced.append("--force")
    if turn.selection.dirty and _matches(candidate.name, turn.selection.dirty):
        forced.append("--dirty")
    if turn.phase in candidate.leftover:
        forced.append(candidate.leftover[turn.phase])
    if turn.phase in _TAINTING:
        ran = [step.target for step in upstream if step.status is Planned.WOULD_RUN]
        forced.extend(f"tainted by {name}" for name in ran)
    if not forced:
        return own
    return Dirtiness.yes(*(own.reasons if own.is_to_run else ()), *forced)


def _matches(name: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)
