"""What a plan expects of its targets: their observations, after the steps that are planned so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lakewright.errors import Fault
from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.graph import Node
from lakewright.plan.last_build import NOTHING, LastBuild
from lakewright.plan.observation import Observation
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.plan.resource_index import ResourceIndex
from lakewright.plan.step import Added, Append, StepKey

__all__ = ["Candidate", "Expectations"]


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
    appended: Callable[[], str | None] = lambda: None
    landed: Callable[[], str | None] = lambda: None
    last_build: Callable[[], LastBuild] = lambda: NOTHING
    is_compared: bool = False
    missing: Callable[[Callable[[Resource], bool]], Fault | None] = lambda _: None
    labels: frozenset[str] = frozenset()
    append: Append | None = None
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
