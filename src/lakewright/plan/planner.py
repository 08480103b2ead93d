"""Make a plan from observations: which targets are active, in which order, dirty or clean, and why.

Each step that would run changes the state that later steps find. The planner therefore keeps the expected
state of each subject after the steps planned so far, so that the plan is right for all instances of a run.
This is Lakewright's own rule.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" (active targets) and "Dirtiness".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from lakewright.errors import Fault
from lakewright.plan.dirtiness import Dirtiness, left_slices
from lakewright.plan.graph import Graph, Node, build_graph
from lakewright.plan.last_build import NOTHING, LastBuild
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code, error_reason
from lakewright.plan.resource import Resource
from lakewright.plan.resource_index import ResourceIndex
from lakewright.plan.selectors import Selectable
from lakewright.plan.status import Planned
from lakewright.plan.step import Added, Append, InstancePlan, PhasePlan, Plan, Step, StepKey
from lakewright.spec.models.job import Execution
from lakewright.spec.reason import Reason

_ENTITY = "entity"
"""The kind of targets that process slices of entities."""

MAY_BE_ADDED = "may_be_added"
"""The code of the warning that a target may add rows which are there."""

_BUILDING = (Phase.VALIDATE, Phase.CREATE, Phase.BUILD, Phase.VERIFY)


@dataclass(frozen=True)
class Candidate:
    """One target of one instance.

    Attributes:
        name: Name of the target.
        kind: Its kind.
        nodes: Its dependencies in each phase that it takes part in.
        observe: Returns its observation. Called at most once, and only for selected targets.
        dirtiness: Returns whether it must run in a phase, given an observation. Pure.
        lost: Returns a notice if a phase makes its table anew, empties or removes it, and others have built
            into it, given an observation.
        lacks: Returns a notice if a phase creates a view of which a table lacks a column that it names. It is
            given whether a step of the plan creates or migrates a table.
        added: Returns that its build adds rows which an earlier one has added; None if it does not.
        appended: Returns why it is not built again, as an earlier attempt has added its rows; else None.
        landed: Returns that a build which is done again adds none, as its rows are there; else None.
        last_build: Returns how its last build stands.
        is_compared: Whether it is built whenever its definition or an input has changed.
        missing: Returns a notice if it is to be built from a table that does not exist. It is given whether
            a step of the plan makes a table.
        labels: `key` and `key=value` of each of its labels.
        append: That building it adds rows to those that are there, if it does.
        updates_rows: Whether building it keeps the rows of other instances in the same places.
        definition: The digest of what is declared of the rows that it builds; None if it builds none.
        fault: The fault in the project's files for which it waits, or None.
        may_write_all: Whether it waits, and nobody knows what it writes.
    """

    name: str
    kind: str
    nodes: Mapping[Phase, Node]
    observe: Callable[[], Observation]
    dirtiness: Callable[[Phase, Observation], Dirtiness]
    lost: Callable[[Phase, Observation], Fault | None] = lambda *_: None
    lacks: Callable[[Phase, Callable[[Resource], bool]], Fault | None] = lambda *_: None
    added: Callable[[], Added | None] = lambda: None
    appended: Callable[[], Reason | None] = lambda: None
    landed: Callable[[], Reason | None] = lambda: None
    last_build: Callable[[], LastBuild] = lambda: NOTHING
    is_compared: bool = False
    missing: Callable[[Callable[[Resource], bool]], Fault | None] = lambda _: None
    labels: frozenset[str] = frozenset()
    append: Append | None = None
    updates_rows: bool = False
    definition: str | None = None
    fault: Fault | None = None
    may_write_all: bool = False

    @cached_property
    def observation(self) -> Observation:
        """The state of the target before any step runs."""
        return self.observe()


_WHOLE = (Phase.CREATE, Phase.DESTROY)
"""Phases that affect a whole table, whichever partition of it a target observes."""

_CHANGING = (*_WHOLE, Phase.BUILD, Phase.TRUNCATE)

Expected = tuple[Observation, StepKey]


class Expectations:
    """The expected observation of each subject. A target that no step changes keeps its own observation."""

    def __init__(self) -> None:
        self._by_subject: dict[str, list[Expected]] = {}
        self._whole: dict[tuple[Phase, frozenset[Resource]], StepKey] = {}
        self._processed: dict[frozenset[Resource], dict[str, StepKey]] = {}
        self._written: ResourceIndex[tuple[int, StepKey]] = ResourceIndex()
        self._built: dict[str, int] = {}
        self._steps = 0

    def of(self, candidate: Candidate) -> Observation:
        """Return the expected observation of a target."""
        history = self._history(candidate)
        return history[-1][0] if history else candidate.observation

    def add(self, step: StepKey, candidate: Candidate) -> None:
        """Record the expected effect of a planned step."""
        phase = step[1]
        if phase not in _CHANGING:
            return
        before = self.of(candidate)
        history = [*self._history(candidate), (before.after(phase), step)]
        self._by_subject[candidate.observation.subject] = history
        if phase is Phase.BUILD and before.pending:
            slices = self._processed.setdefault(candidate.nodes[phase].provides, {})
            slices.update(dict.fromkeys(before.pending, step))
        if phase is Phase.BUILD:
            self._steps += 1
            self._built[candidate.observation.subject] = self._steps
            for resource in candidate.nodes[phase].provides:
                self._written.add(resource, (self._steps, step))
        if phase in _WHOLE and candidate.nodes[phase].provides:
            self._whole.setdefault((phase, candidate.nodes[phase].provides), step)

    def is_created(self, resource: Resource) -> bool:
        """Return whether a planned step creates or migrates a table."""
        created = (places for phase, places in self._whole if phase is Phase.CREATE)
        return any(each.intersects(resource) for places in created for each in places)

    def is_written(self, resource: Resource) -> bool:
        """Return whether a planned step writes a resource, or a part of it."""
        return any(True for _ in self._written.touching(resource))

    def written_before(self, index: int, candidate: Candidate) -> StepKey | None:
        """Return a planned step of an earlier instance that writes what a target reads, or None.

        What was planned before the target's own last build is in that build.
        """
        since = self._built.get(candidate.observation.subject, 0)
        found = (
            each for read in candidate.nodes[Phase.BUILD].requires for each in self._written.touching(read)
        )
        return next((step for order, step in found if order > since and step[0] < index), None)

    def built_by(self, candidate: Candidate) -> StepKey | None:
        """Return the planned step of a target that builds the same output, or None if there is none."""
        found = (step for _, step in self._history(candidate) if step[1] is Phase.BUILD)
        return next((step for step in found if step[2] == candidate.name), None)

    def relied_on(self, phase: Phase, candidate: Candidate) -> StepKey | None:
        """Return the planned step that makes a dirty target clean, or None if no step is needed for that."""
        found, was_dirty = None, candidate.dirtiness(phase, candidate.observation).is_to_run
        for observation, step in self._history(candidate):
            is_dirty = candidate.dirtiness(phase, observation).is_to_run
            if was_dirty and not is_dirty:
                found = step
            was_dirty = is_dirty
        return found

    def _history(self, candidate: Candidate) -> Sequence[Expected]:
        found = candidate.observation
        history = self._by_subject.get(found.subject) or [
            (found.after(phase), self._whole[phase, node.provides])
            for phase, node in candidate.nodes.items()
            if phase in _WHOLE and (phase, node.provides) in self._whole
        ]
        if found.pending or found.others:
            return self._with_slices(candidate, history)
        return history

    def _with_slices(self, candidate: Candidate, history: Sequence[Expected]) -> Sequence[Expected]:
        """Return the history of a target, followed by its slices that others process into the same table."""
        node = candidate.nodes.get(Phase.BUILD)
        processed = self._processed.get(node.provides, {}) if node is not None else {}
        latest = history[-1][0] if history else candidate.observation
        steps = [processed[name] for name in (*latest.pending, *latest.others) if name in processed]
        if not steps:
            return history
        return [*history, (latest.without_slices(processed.keys()), max(steps, key=lambda step: step[0]))]


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance of a job: its parameters as text, and its targets in declared order."""

    parameters: Mapping[str, str]
    candidates: tuple[Candidate, ...]


def selectables(instance: Instance) -> tuple[Selectable, ...]:
    """Return an instance's targets for `select`, with their dependencies in all phases of the build."""
    sources: dict[str, frozenset[str]] = {}
    for phase in _BUILDING:
        nodes = [each.nodes[phase] for each in instance.candidates if phase in each.nodes]
        for name, found in build_graph(nodes, phase).sources.items():
            sources[name] = sources.get(name, frozenset()) | found
    return tuple(
        Selectable(each.name, each.kind, each.labels, sources.get(each.name, frozenset()))
        for each in instance.candidates
    )


_TAINTING = (Phase.CREATE, Phase.BUILD)


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The steps that a caller wants to be planned.

    Attributes:
        phases: Phases to run, in order.
        executions: The job's `executions`.
        targets: Names of the targets to run, or None for all.
        dirty: Patterns of targets to run even if they are clean (`--dirty`).
        is_forced: Whether clean targets run too (`--force`).
        only: Exactly the steps to run, for `--resume`, or None for all.
        keep_going: Whether targets that do not depend on a blocked one still run.
    """

    phases: tuple[Phase, ...]
    executions: tuple[Execution, ...] = ()
    targets: frozenset[str] | None = None
    dirty: tuple[re.Pattern[str], ...] = ()
    is_forced: bool = False
    only: Collection[StepKey] | None = None
    keep_going: bool = False


def build_plan(
    project: str, job: str, instances: Iterable[Instance], request: PlanRequest, *, count: int
) -> Plan:
    """Return the plan of a run of `job`.

    Args:
        project: Name of the project.
        job: Name of the job.
        instances: The instances, in order. They are read once, so a generator is enough.
        request: The steps that the caller wants to be planned.
        count: The number of instances.

    Raises:
        SpecError: The targets form a cycle.
    """
    planner = _Planner(request, count)
    planned = tuple(planner.instance(index, instance) for index, instance in enumerate(instances))
    return Plan(project, job, request.phases[-1], planned)


@dataclass(slots=True)
class _Planner:
    """The planning of one run.

    Attributes:
        expected: The expected observations after the steps planned so far.
        obstacle: Why later phases and instances are not reached, or None as long as nothing is blocked.
        warned: The warnings that a step has already, or what they are about.
    """

    request: PlanRequest
    count: int
    expected: Expectations = field(default_factory=Expectations)
    obstacle: Reason | None = None
    warned: set[Fault | str | None] = field(default_factory=set)

    def instance(self, index: int, instance: Instance) -> InstancePlan:
        planning = _InstancePlanning(self, index, instance)
        planned = [planning.phase(phase) for phase in self.request.phases]
        return InstancePlan(instance.parameters, tuple(phase for phase in planned if phase is not None))


@dataclass(slots=True)
class _InstancePlanning:
    """The planning of one instance.

    Attributes:
        blocked: Blocked targets, each with the first phase in which it is blocked.
        withheld: Targets that wait for a fault in the project's files. They are no obstacle to others.
    """

    planner: _Planner
    index: int
    planned: Instance
    blocked: dict[str, Phase] = field(default_factory=dict)
    withheld: set[str] = field(default_factory=set)

    def phase(self, phase: Phase) -> PhasePlan | None:
        request, count = self.planner.request, self.planner.count
        patterns = active_patterns(request.executions, phase, index=self.index, count=count)
        if not patterns:
            return None
        takes_part = [candidate for candidate in self.planned.candidates if phase in candidate.nodes]
        graph = build_graph([candidate.nodes[phase] for candidate in takes_part], phase)
        by_name = {candidate.name: candidate for candidate in takes_part}
        steps: dict[str, Step] = {}
        for name in graph.order:
            if self._is_selected(phase, by_name[name], patterns):
                steps[name] = self._step(phase, by_name[name], _upstream(steps, graph, name))
        self._note_blocked(phase, steps.values())
        lacks = f"no target takes part in {phase}" if request.only is None else "no target was left undone"
        note = None if steps else lacks
        return PhasePlan(phase, tuple(steps.values()), graph.sources, graph.nearest(steps.keys()), note)

    def _is_selected(self, phase: Phase, candidate: Candidate, patterns: tuple[re.Pattern[str], ...]) -> bool:
        request, name = self.planner.request, candidate.name
        is_left = request.only is None or (self.index, phase, name) in request.only
        if not is_left and not self._is_made_anew(phase, candidate):
            return False
        return _matches(name, patterns) and (request.targets is None or name in request.targets)

    def _is_made_anew(self, phase: Phase, candidate: Candidate) -> bool:
        """Return whether a resumed run needs CREATE again: what is left was declared anew, or is gone."""
        left = self.planner.request.only or ()
        if phase is not Phase.CREATE or (self.index, Phase.BUILD, candidate.name) not in left:
            return False
        return candidate.dirtiness(phase, self.planner.expected.of(candidate)).is_to_run

    def _note_blocked(self, phase: Phase, steps: Iterable[Step]) -> None:
        found = [step for step in steps if step.status is Planned.BLOCKED]
        for step in found:
            self.blocked.setdefault(step.target, phase)
        blocked = [step.target for step in found if not step.is_withheld]
        if blocked and not self.planner.request.keep_going and self.planner.obstacle is None:
            self.planner.obstacle = Reason(Code.BLOCKED_BEFORE, {"target": blocked[0], "phase": phase.value})

    def _step(self, phase: Phase, candidate: Candidate, upstream: Sequence[Step]) -> Step:
        expected = self.planner.expected
        step = Step(phase, candidate.name, candidate.kind, Planned.BLOCKED, ())
        if (withheld := self._withheld(step, candidate, upstream)) is not None:
            return withheld
        is_build = phase is Phase.BUILD
        observation = expected.of(candidate)
        may_hold = observation.filled is not Answer.NO  # rows that a step before empties are added again
        blocked = self._blocked(candidate.name, upstream)
        hold = observation.hold if is_build and not observation.pending else None
        if is_build:
            step = replace(step, definition=candidate.definition, provides=candidate.nodes[phase].provides)
        if self.planner.obstacle is None:
            if blocked:
                return replace(step, reasons=blocked)
            if hold is not None:
                notice = self._new(observation.warning, observation.subject)
                return replace(step, reasons=(error_reason(hold.error.message),), hold=hold, notice=notice)
        if is_build:
            step = replace(step, notice=self._new(observation.warning, observation.subject))
        own = candidate.dirtiness(phase, observation)
        if own.is_to_run:
            step = _with_losses(step, candidate, observation)
        forced = self._forced(phase, candidate, upstream)
        left = self._left(phase, candidate, observation)
        stale: tuple[Reason, ...] = ()
        relies_on = None
        if is_build and not (own.is_to_run or forced or blocked or hold):
            stale, noted, relies_on = self._stale(candidate)
            left = (*noted, *left)
        # What waits, or depends on what waits, is work that is left: --resume must find it.
        appended = candidate.appended() if is_build and may_hold else None
        if appended is not None or not (own.is_to_run or forced or stale or blocked or hold):
            relies_on = relies_on or expected.relied_on(phase, candidate)
            return replace(
                step,
                status=Planned.CLEAN,
                reasons=(*(own.reasons if appended is None else (appended,)), *left),
                relies_on=relies_on,
                provides=frozenset(),
                definition=None,
            )
        if self.planner.obstacle is not None:
            return replace(step, reasons=(self.planner.obstacle,), is_reached=False)
        landed = candidate.landed() if is_build and may_hold else None
        if is_build and landed is None:
            step = self._with_effects(step, candidate, observation)
        if phase in _TAINTING and step.warning is None:
            step = replace(step, notice=self._new(candidate.lacks(phase, expected.is_created)))
        expected.add((self.index, phase, candidate.name), candidate)
        return replace(
            step,
            status=Planned.WOULD_RUN,
            reasons=(
                *((landed,) if landed else (*_own_reasons(phase, observation, own), *stale)),
                *forced,
                *left,
            ),
            slices=observation.pending if is_build else (),
            changes=observation.changes if phase is Phase.CREATE else (),
            requires=candidate.nodes[phase].requires,
            provides=candidate.nodes[phase].provides,
            append=candidate.append if is_build else None,
            updates_rows=candidate.updates_rows,
        )

    def _stale(self, candidate: Candidate) -> tuple[tuple[Reason, ...], tuple[Reason, ...], StepKey | None]:
        """Return why a target is stale, what is noted of it, and a step before that builds it."""
        last = candidate.last_build()
        reason = last.changed if candidate.is_compared else last.stale
        before = None if reason is None else self.planner.expected.built_by(candidate)
        if reason is not None:
            return (() if before else (reason,)), (), before
        return (), ((Reason(Code.REDEFINED),) if last.is_redefined else ()), None

    def _with_effects(self, step: Step, candidate: Candidate, observation: Observation) -> Step:
        """Return a step that builds a target with what it does to rows that are there."""
        # Where nothing exists, no rows come twice.
        if candidate.observation.exists is not Answer.NO and observation.filled is not Answer.NO:
            step = replace(step, added=candidate.added())
            if step.warning is None:
                step = replace(step, notice=self._may_be_added(candidate))
        return step if step.warnings else replace(step, notice=self._missing(candidate))

    def _may_be_added(self, candidate: Candidate) -> Fault | None:
        """Return the warning of a target that appends, if tables' logs have runs that the manifest lacks."""
        entities = (each for each in self.planned.candidates if each.kind == _ENTITY)
        lacking = (each.name for each in entities if each.observation.recovered)
        entity = next(lacking, None) if candidate.append is not None else None
        if entity is None:
            return None
        return Fault(
            f"target {candidate.name!r} may add its rows once more: the manifest lacks slices that the table "
            f"of target {entity!r} holds, and the runs that may have added the rows",
            remedy="Look whether the rows of this instance are there. If so, choose the others with -t.",
            code=MAY_BE_ADDED,
        )

    def _withheld(self, step: Step, candidate: Candidate, upstream: Sequence[Step]) -> Step | None:
        """Return the step of a target that waits for a fault in the project's files; None if it doesn't."""
        name, fault = candidate.name, candidate.fault
        is_new = name not in self.withheld
        if not is_new:
            reasons: tuple[Reason, ...] = (Reason(Code.WITHHELD),)
        elif fault is not None:
            reasons = (Reason(Code.FAULTY, {"why": fault.message}),)
        else:
            sources = (each.target for each in upstream if each.is_withheld)
            reasons = tuple(Reason(Code.SOURCE_WITHHELD, {"target": name}) for name in sources)
            reasons = reasons or self._may_need(step.phase, candidate)
        if not reasons:
            return None
        self.withheld.add(name)
        return replace(step, reasons=reasons, is_withheld=True, fault=fault if is_new else None)

    def _may_need(self, phase: Phase, candidate: Candidate) -> tuple[Reason, ...]:
        """Return the faulty targets of which nobody knows whether they write what this one reads.

        The slices of an entity wait in bronze: one that comes later is processed by the next run.
        """
        if candidate.kind == _ENTITY or not candidate.nodes[phase].requires:
            return ()
        unknown = (each.name for each in self.planned.candidates if each.may_write_all)
        return tuple(Reason(Code.MAY_NEED, {"target": name}) for name in unknown)

    def _missing(self, candidate: Candidate) -> Fault | None:
        """Return the warning of an input that does not exist, which only the first instance has."""
        return self._new(candidate.missing(self.planner.expected.is_written))

    def _new(self, found: Fault | None, subject: str | None = None) -> Fault | None:
        """Return a warning, unless an earlier step has it, or one about the same subject."""
        warned, key = self.planner.warned, subject or found
        if found is None or key in warned:
            return None
        warned.add(key)
        return found

    def _blocked(self, name: str, upstream: Iterable[Step]) -> tuple[Reason, ...]:
        """Return why a target cannot run: it was blocked in an earlier phase, or a dependency is blocked."""
        phase = self.blocked.get(name)
        own = () if phase is None else (Reason(Code.OWN_BLOCKED, {"phase": phase.value}),)
        others = (step.target for step in upstream if step.status is Planned.BLOCKED)
        return (*own, *(Reason(Code.BLOCKED, {"target": other}) for other in others))

    def _left(self, phase: Phase, candidate: Candidate, observation: Observation) -> tuple[Reason, ...]:
        """Return which slices the run leaves to others; only its last instance says so, for all of them."""
        count = self.planner.count
        if phase is not Phase.BUILD or not (observation.others or observation.late):
            return ()
        in_last = active_patterns(self.planner.request.executions, phase, index=count - 1, count=count)
        if self.index < count - 1 and _matches(candidate.name, in_last):
            return ()
        others, late = observation.others, filter(None, (observation.late,))
        return (*((left_slices(others),) if others else ()), *late)

    def _forced(self, phase: Phase, candidate: Candidate, upstream: Iterable[Step]) -> tuple[Reason, ...]:
        """Return why a target must run regardless of its own verdict."""
        request = self.planner.request
        reasons: list[Reason] = []
        if request.is_forced:
            reasons.append(Reason(Code.FORCED))
        if _matches(candidate.name, request.dirty):
            reasons.append(Reason(Code.DIRTY))
        if phase in _TAINTING:
            ran = (step.target for step in upstream if step.status is Planned.WOULD_RUN)
            reasons.extend(Reason(Code.TAINTED, {"target": name}) for name in ran)
        # Only such a target is built again for changed inputs; others are filled once their rows are there.
        if phase is Phase.BUILD and not reasons and candidate.is_compared:
            written = self.planner.expected.written_before(self.index, candidate)
            if written is not None:
                reasons.append(Reason(Code.TAINTED_BEFORE, {"target": written[2]}))
        return tuple(reasons)


def _with_losses(step: Step, candidate: Candidate, observation: Observation) -> Step:
    """Return a step that makes a table, or removes rows, with what others lose by it."""
    if not (step.phase is Phase.CREATE or step.phase.is_cleanup):
        return step
    refused = _refused(observation) if step.phase is Phase.CREATE else None
    lost = candidate.lost(step.phase, observation) if refused is None else None
    return replace(step, notice=refused, lost=lost)


def _own_reasons(phase: Phase, observation: Observation, own: Dirtiness) -> tuple[Reason, ...]:
    """Return why a target runs by its own state; what waits for inputs may be created with them."""
    if own.is_to_run:
        return own.reasons
    is_made = phase is Phase.CREATE and observation.exists is Answer.NO
    return (Reason(Code.ABSENT),) if is_made else ()


def _refused(observation: Observation) -> Fault | None:
    """Return the warning of a migration with which CREATE will fail; None if it does not."""
    refusal = observation.refusal
    return None if refusal is None else replace(refusal, message=f"CREATE will fail: {refusal.message}")


def _upstream(steps: Mapping[str, Step], graph: Graph, name: str) -> list[Step]:
    found = graph.sources[name] & steps.keys()
    return [step for other, step in steps.items() if other in found] if found else []


def _matches(name: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)


def active_patterns(
    executions: Sequence[Execution], phase: Phase, *, index: int, count: int
) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of the active targets, or none if the instance skips the phase.

    A phase that no entry names is active in every instance, with all targets.
    """
    listed = [entry for entry in executions if entry.phase == phase]
    if not listed:
        return (re.compile(".*"),)
    active = [entry for entry in listed if _is_active(entry.cycle, index, count)]
    return tuple(re.compile(pattern) for entry in active for pattern in entry.targets)


def _is_active(cycle: str, index: int, count: int) -> bool:
    if cycle == "first":
        return index == 0
    if cycle == "last":
        return index == count - 1
    return cycle == "always"
