"""A plan: the steps that make a lake as it should be, and findings, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lakewright.due.facts import Decision, Slice, SliceTime, Subject, Unknown, Verb
from lakewright.spec import reason
from lakewright.spec.grants import Grant
from lakewright.spec.reason import ReasonCode


class Action(StrEnum):
    """What a step does.

    `record` records slices that the table holds, or that change nothing in it. `forward` applies slices at
    the end. `replay` goes back to what the table and its slices have in common, and applies the rest. `hold`
    does nothing: it stands for what a person must decide.
    """

    RECORD = "record"
    FORWARD = "forward"
    REPLAY = "replay"
    BUILD = "build"
    CHECK = "check"
    RELEASE = "release"
    HOLD = "hold"


class State(StrEnum):
    """Whether a step can be taken."""

    READY = "ready"
    WAITS = "waits"
    NEEDS_CONSENT = "needs_consent"
    NEEDS_DECISION = "needs_decision"
    BLOCKED = "blocked"

    @property
    def needs_person(self) -> bool:
        """Whether a person must do something first."""
        return self not in (State.READY, State.WAITS)


class Severity(StrEnum):
    """How urgent what was noticed is: an error needs somebody, of a warning somebody should know."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Code(ReasonCode):
    """Why a step is due, or what was noticed."""

    HELD_UNRECORDED = "held_unrecorded", "the table holds what the manifest does not know"
    SUPERSEDED = "superseded", "a later slice has replaced all rows"
    NEW_SLICES = "new_slices", "new in bronze"
    LATE_SLICE = "late_slice", "{slice} is older than slices that the table holds"
    LATE_SKIPPED = "late_skipped", "`late_slices: skip` leaves out {slices}"
    CHANGED_SLICE = "changed_slice", "the files of {slice} have changed since it was processed"
    FAILED_SLICE = "failed_slice", "{slice} failed: {why}"
    FAILED_BEFORE = "failed_before", "{slices} must follow a slice that is held"
    OTHER_ORDER = "other_order", "{skipped} is skipped, and the table holds it"
    REDECLARED = "redeclared", "the rows are of another declaration: {why}"
    TABLE_GONE = "table_gone", "the table is gone"
    TABLE_OLDER = "table_older", "the table is an older copy, which lacks slices that were processed"
    FILES_GONE = "files_gone", "files that must be read are gone or have changed: {slices}"
    UNCLAIMED = (
        "unclaimed",
        "the job that takes {slice} needs {parameters}, which no `slices` of its target gives",
    )
    LOCKED = "locked", "held by {holder}"
    DEAD_LOCK = "dead_lock", "{holder} has ended"
    FOREIGN_ROWS = "foreign_rows", "another writer changed rows in version {version}"
    NO_BUILD = "no_build", "it was never built"
    CUT_OFF = "cut_off", "a run did not finish building it"
    REDEFINED = "redefined", "its definition has changed"
    INPUT_MOVED = "input_moved", "what it reads has changed: {places}"
    INPUT_MISSING = "input_missing", "what it reads does not exist: {places}"
    INPUT_DUE = "input_due", "what it reads is about to change"
    OUTPUT_CHANGED = "output_changed", "another writer changed what it wrote"
    OUTPUT_GONE = "output_gone", "what it wrote is gone"
    WITHDRAWN = "withdrawn", "a person emptied it"
    WAIVED = "waived", "a person does not want it any more"
    KEPT_AS_FILLED = "kept_as_filled", "it is only built while it is empty"
    APPENDED_BEFORE = "appended_before", "its rows are in the table already"
    UNSEEN = (
        "unseen",
        "nobody knows whether these have changed, and it is only built when a job asks: {places}",
    )
    REFRESH = (
        "refresh",
        "nobody knows whether these have changed, and `refresh` says to build it again: {places}",
    )
    UNCHECKED = "unchecked", "it was not checked since it was built"
    CHECK_FAILED = "check_failed", "a check failed"
    SLICE_GONE = "slice_gone", "{slice} is to be processed, and is gone from bronze"
    SKIPPED_CHANGED = "skipped_changed", "{slice} is skipped, and its files have changed since"
    INCOMPLETE = "incomplete", "not complete yet: {slices}"
    UNREADABLE = "unreadable", "{slice} can't be read: {why}"
    VANISHED = "vanished", "processed, but no longer in bronze: {slices}"
    UNDATED = "undated", "no date in the names of {slices}: their versions would begin when they are loaded"
    TAKEN_OVER = "taken_over", "with the next slice: {what}"
    NO_FILES = "no_files", "no file is {place}"
    ELSEWHERE = "elsewhere", "open slices were recorded in {place}, which no run reads: {slices}"
    BAD_ROWS = "bad_rows", "bad rows of {slices} were put aside in {folder}: {rows}"
    DISABLED = "disabled", "the entity is disabled, so that nothing processes {slices}"
    UNDECLARED = (
        "undeclared",
        "it is not declared; slices that it has processed: {processed}, others: {others}",
    )
    UNRECORDED = (
        "unrecorded",
        "no build of it is recorded, and something is there: run its job to build what is stale",
    )
    FAILED_ITEM = "failed_item", "{item} failed"
    LEFT_ITEM = "left_item", "{item} is locked, and {holder} has ended"
    BROKEN = "broken", "{why}"
    UNKNOWN = "unknown", "{why}"


_ERRORS = frozenset(
    (
        *(
            Code.BROKEN,
            Code.FAILED_SLICE,
            Code.FAILED_ITEM,
            Code.FILES_GONE,
            Code.SLICE_GONE,
            Code.TABLE_GONE,
        ),
        *(Code.TABLE_OLDER, Code.UNREADABLE, Code.CHECK_FAILED, Code.INPUT_MISSING, Code.OUTPUT_GONE),
    )
)
_WARNINGS = frozenset(
    (
        *(Code.LATE_SLICE, Code.CHANGED_SLICE, Code.UNCLAIMED, Code.FOREIGN_ROWS, Code.OUTPUT_CHANGED),
        *(Code.SKIPPED_CHANGED, Code.VANISHED, Code.ELSEWHERE, Code.BAD_ROWS, Code.UNDECLARED),
        *(Code.UNDATED, Code.NO_FILES),
        *(
            Code.UNRECORDED,
            Code.LEFT_ITEM,
            Code.DEAD_LOCK,
            Code.CUT_OFF,
            Code.APPENDED_BEFORE,
            Code.UNKNOWN,
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Reason(reason.Reason):
    """Why a step is due, or what was noticed."""

    code: Code

    @property
    def severity(self) -> Severity:
        """How urgent it is, which its code decides."""
        if self.code in _ERRORS:
            return Severity.ERROR
        return Severity.WARNING if self.code in _WARNINGS else Severity.INFO


def broken(why: Unknown) -> Reason:
    """Return the reason of a step that an error stands in the way of."""
    return Reason(Code.BROKEN, {"why": why.why, "error": why.code, "remedy": why.remedy})


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person may decide.

    Attributes:
        about: What it answers: why the step waits for it, or why what is decided already was asked.
    """

    decision: Decision
    about: Code

    @property
    def verb(self) -> Verb:
        """The verb of the decision."""
        return self.decision.verb


def choices_of(subject: Subject, basis: str, verbs: Iterable[Verb], about: Code) -> tuple[Choice, ...]:
    """Return the choices of a person about a subject whose fact is the basis."""
    return tuple(Choice(Decision(subject, verb, basis), about) for verb in verbs)


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        id: Its identity in the plan.
        action: What it does.
        subject: What it does it to.
        reason: Why.
        state: Whether it can be taken.
        after: The steps that come before it.
        slices: The slices that it records or applies, in order.
        base: How many entries of the table a replay keeps.
        removes: The names of slices whose rows a replay removes, and does not apply again.
        needs: The grants that it needs and that are not given.
        choices: What a person may decide; of a replay, what may be decided instead.
        instance: The parameters of the instance of a target.
        times: The processing times of the slices that it applies, by their names.
    """

    id: str
    action: Action
    subject: Subject
    reason: Reason
    state: State = State.READY
    after: tuple[str, ...] = ()
    slices: tuple[Slice, ...] = ()
    base: int = 0
    removes: tuple[str, ...] = ()
    needs: frozenset[Grant] = frozenset()
    choices: tuple[Choice, ...] = ()
    instance: Mapping[str, str] = field(default_factory=dict, hash=False)
    times: Mapping[str, SliceTime] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was noticed and left, with what a person may decide of it."""

    reason: Reason
    subject: Subject
    choices: tuple[Choice, ...] = ()
    instance: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps, each after those that it follows, and findings."""

    steps: tuple[Step, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def ready(self) -> tuple[Step, ...]:
        """The steps that need nobody, in the order in which they are taken."""
        return tuple(step for step in self.steps if step.state is State.READY)

    @property
    def asked(self) -> tuple[Step, ...]:
        """The steps that a person must do something for first."""
        return tuple(step for step in self.steps if step.state.needs_person)

    @property
    def waiting(self) -> tuple[Step, ...]:
        """The steps that come after others, or after another process."""
        return tuple(step for step in self.steps if step.state is State.WAITS)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What a person may decide now."""
        offered = (*(each.choices for each in self.steps), *(each.choices for each in self.findings))
        return tuple(choice for choices in offered for choice in choices)

    def behind(self, step: Step) -> tuple[Slice, ...]:
        """Return the slices that wait for a step."""
        return tuple(slice_ for each in self.waiting if step.id in each.after for slice_ in each.slices)
