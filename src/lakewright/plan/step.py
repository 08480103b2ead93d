"""Plans: for every target in every phase of every instance, whether it would run, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Protocol

from lakewright.errors import Fault
from lakewright.manifest.plain_values import document_of
from lakewright.notebook import html_table
from lakewright.plan.observation import Hold, TableChange
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code
from lakewright.plan.resource import Resource
from lakewright.plan.status import Planned
from lakewright.spec.expressions.secrets import HIDDEN, is_secret_name
from lakewright.spec.reason import Reason, ReasonCode, reasons_document, reasons_text

StepKey = tuple[int, Phase, str]
"""Identifies a step: the index of its instance, its phase and its target."""


@dataclass(frozen=True, slots=True)
class Append:
    """That a build adds its rows to those that are there, so that they are there twice if it is done twice.

    Attributes:
        is_once: Whether the table shows that an append was done, so that it is not done again under the same
            identity.
        begun: The identity under which the run that is resumed has begun it; None if it has not.
    """

    is_once: bool
    begun: str | None = None


@dataclass(frozen=True, slots=True)
class Added:
    """That a build adds rows which are there already.

    Attributes:
        fault: The same, as a warning for users.
        is_meant: Whether the target is declared to add them in each build.
    """

    fault: Fault
    is_meant: bool


@dataclass(frozen=True, slots=True, repr=False)
class Step:
    """One target in one phase of one instance.

    Attributes:
        reasons: Why it would run, is clean or is blocked. Never empty.
        slices: The slices that it would process, which its first reason names.
        hold: The lock or the unresolved failure that blocks it, or None.
        notice: What an operator should look at beside what blocks the step and what follows, or None.
        lost: A notice of what others have built and it removes, or None.
        added: That it adds rows which are there already, or None.
        fault: The fault in the project's files for which the target waits, in its first step; else None.
        is_withheld: Whether it waits for a fault in the project's files, while others go on.
        changes: The changes that CREATE would make to the existing table.
        requires: Resources that it reads, if it is not clean.
        provides: Resources that it writes or removes, if it is not clean.
        append: That it adds rows to those that are there, if it would run and does.
        updates_rows: Whether it keeps the rows that other instances have written into the same places.
        definition: The digest of what is declared of the rows that it builds; None if it builds none.
        relies_on: The earlier step that makes this one clean, or None if it is clean without any step.
        is_reached: Whether no earlier phase or instance keeps it from running.
    """

    phase: Phase
    target: str
    kind: str
    status: Planned
    reasons: tuple[Reason, ...]
    slices: tuple[str, ...] = ()
    hold: Hold | None = None
    notice: Fault | None = None
    lost: Fault | None = None
    added: Added | None = None
    fault: Fault | None = None
    is_withheld: bool = False
    changes: tuple[TableChange, ...] = ()
    requires: frozenset[Resource] = frozenset()
    provides: frozenset[Resource] = frozenset()
    append: Append | None = None
    updates_rows: bool = False
    definition: str | None = None
    relies_on: StepKey | None = None
    is_reached: bool = True

    def __repr__(self) -> str:
        return f"<Step {self.phase} {self.target} {self.status.value}: {reasons_text(self.reasons)}>"

    @property
    def error(self) -> Fault | None:
        """What blocks it, and what to do; None if it is not blocked, or by another step."""
        return self.hold.error if self.hold else self.fault

    @property
    def warnings(self) -> tuple[Fault, ...]:
        """What an operator should look at beside what blocks the step."""
        added = None if self.added is None else self.added.fault
        return tuple(each for each in (self.lost, self.notice, added) if each is not None)

    @property
    def warning(self) -> Fault | None:
        """The same as one fault; None if there is nothing."""
        return reduce(Fault.and_also, self.warnings) if self.warnings else None

    def append_id(self, run_id: str, instance: int) -> str | None:
        """Return the identity of its append, which a run that is resumed shares; None if it has none."""
        if self.append is None or not self.append.is_once:
            return None
        return self.append.begun or f"lakewright append {run_id} {instance} {self.target}"

    def as_json(self) -> dict[str, Any]:
        """Return the step as `plan -o json` prints it."""
        changes = [{"description": each.description, "loses": each.loses} for each in self.changes]
        named, reasons = ("kind", "status", "error", "warning"), reasons_document(self.reasons)
        return {"name": self.target, **document_of(self, *named, changes=changes, **reasons)}


_DONE = {
    Phase.CREATE: "created",
    Phase.BUILD: "built",
    Phase.TRUNCATE: "emptied",
    Phase.DESTROY: "removed",
}

_PAST: Mapping[ReasonCode, Code] = {
    Code.ABSENT: Code.WAS_ABSENT,
    Code.EMPTY: Code.WAS_EMPTY,
    Code.FILLED: Code.WAS_FILLED,
    Code.PRESENT: Code.WAS_PRESENT,
}
"""The states that a step changes, and what they are called afterwards."""


def done_reasons(step: Step, slices: Sequence[str] = ()) -> tuple[Reason, ...]:
    """Return the reasons of a step that has run, in the past tense where it has changed them.

    Args:
        step: The step.
        slices: The slices that it has processed: some may have come since it was planned.

    Example:
        >>> step = Step(Phase.CREATE, "t", "relation", Planned.WOULD_RUN, (Reason(Code.ABSENT),))
        >>> [str(each) for each in done_reasons(step)]
        ['created: did not exist']
    """
    done = _DONE.get(step.phase)
    if done is None:
        return step.reasons
    if slices and step.slices:
        return Reason(Code.PROCESSED, {"slices": slices}), *step.reasons[1:]
    return tuple(
        Reason(_PAST[each.code], {"done": done}) if each.code in _PAST else each for each in step.reasons
    )


@dataclass(frozen=True, slots=True)
class PhasePlan:
    """One phase of one instance.

    Attributes:
        steps: The steps, in order of execution.
        sources: For each target, those whose failure blocks it.
        predecessors: For each target, those that must end before it starts.
        note: Why the phase has no steps, or None if it has some.
    """

    phase: Phase
    steps: tuple[Step, ...]
    sources: Mapping[str, frozenset[str]] = field(default_factory=dict)
    predecessors: Mapping[str, frozenset[str]] = field(default_factory=dict)
    note: str | None = None

    @property
    def status(self) -> Planned:
        """BLOCKED if any step is blocked, else WOULD_RUN if any step would run, else CLEAN."""
        return _most({step.status for step in self.steps})


@dataclass(frozen=True, slots=True)
class InstancePlan:
    """One instance of the job, with the value of each parameter as text."""

    parameters: Mapping[str, str]
    phases: tuple[PhasePlan, ...]

    @property
    def status(self) -> Planned:
        """BLOCKED if any phase is blocked, else WOULD_RUN if any phase would run, else CLEAN."""
        return _most({phase.status for phase in self.phases})


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """What a run of a job up to a phase would do. `plan` prints it, `job` executes it.

    Attributes:
        warning: Why a run would fail whatever the steps are, or None.
    """

    project: str
    job: str
    phase: Phase
    instances: tuple[InstancePlan, ...]
    warning: Fault | None = None

    @property
    def status(self) -> Planned:
        """BLOCKED if any instance is blocked, else WOULD_RUN if any instance would run, else CLEAN."""
        return _most({instance.status for instance in self.instances})

    def steps(self) -> tuple[Step, ...]:
        """Return every step in order of execution."""
        phases = (phase for instance in self.instances for phase in instance.phases)
        return tuple(step for phase in phases for step in phase.steps)

    def with_steps(self, change: Callable[[Step], Step]) -> Plan:
        """Return the plan with each step as a function changes it."""

        def changed(phase: PhasePlan) -> PhasePlan:
            return replace(phase, steps=tuple(map(change, phase.steps)))

        instances = (replace(each, phases=tuple(map(changed, each.phases))) for each in self.instances)
        return replace(self, instances=tuple(instances))

    @property
    def has_work(self) -> bool:
        """Whether any step other than a check would run, for `--detailed-exitcode`."""
        checks = (Phase.VALIDATE, Phase.VERIFY)
        return any(s.status is Planned.WOULD_RUN and s.phase not in checks for s in self.steps())

    def __repr__(self) -> str:
        counts = Counter(step.status for step in self.steps())
        numbers = " ".join(f"{status.value}={counts[status]}" for status in Planned)
        return f"<Plan {self.job} {self.phase.value.lower()} instances={len(self.instances)} {numbers}>"

    def _repr_html_(self) -> str:
        rows = (
            (
                parameters_text(instance.parameters),
                step.phase,
                step.target,
                step.status.value,
                reasons_text(step.reasons),
            )
            for instance in self.instances
            for phase in instance.phases
            for step in phase.steps
        )
        title = f"Plan of {self.job} up to {self.phase.value.lower()}: {self.status.value}"
        if self.warning is not None:
            title += f"; {self.warning.message}"
        faults = (fault for step in self.steps() for fault in (step.error, step.warning) if fault is not None)
        notes = dict.fromkeys(map(str, faults))
        return html_table(title, ("instance", "phase", "target", "status", "reasons"), rows, notes)

    def as_json(self) -> dict[str, Any]:
        """Return the document that `plan -o json` prints. It has the shape of a run's document."""
        instances = instances_as_json(self.instances, lambda phase: phase.steps)
        named = ("project", "job", "phase", "status", "instances", "warning")
        return document_of(self, *named, phase=self.phase.value.lower(), instances=instances)


def parameters_text(parameters: Mapping[str, str]) -> str:
    """Return the parameters of an instance in one line, without secrets."""
    return " ".join(
        f"{name}={HIDDEN if is_secret_name(name) else value}" for name, value in parameters.items()
    )


class Documented(Protocol):
    """What has a document of its own: a step of a plan, or the result of a target."""

    def as_json(self) -> dict[str, Any]:
        """Return the document."""


def instances_as_json(
    instances: Iterable[Any], targets_of: Callable[[Any], Iterable[Documented]]
) -> list[dict[str, Any]]:
    """Return the documents of instances, which have the same shape in plans and runs.

    Args:
        instances: Those of a plan or of a run's result.
        targets_of: Returns the steps or results of one of their phases.
    """
    return [
        {
            "parameters": dict(instance.parameters),
            "status": instance.status.value,
            "phases": [
                {
                    "phase": phase.phase.value,
                    "status": phase.status.value,
                    "note": phase.note,
                    "targets": [each.as_json() for each in targets_of(phase)],
                }
                for phase in instance.phases
            ],
        }
        for instance in instances
    ]


def _most(statuses: set[Planned]) -> Planned:
    for status in (Planned.BLOCKED, Planned.WOULD_RUN):
        if status in statuses:
            return status
    return Planned.CLEAN
