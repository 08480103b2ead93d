"""A plan: the steps that make a lake as it should be, and findings, as values.

Codes are an API: they never change their meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lakewright.due.facts import Decision, Grant, Slice, Subject, Unknown, Verb

__all__ = ["Action", "Choice", "Code", "Finding", "Plan", "Reason", "State", "Step", "broken", "choices_of"]


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


class Code(StrEnum):
    """Why a step is due, or what was noticed."""

    HELD_UNRECORDED = "held_unrecorded"
    SUPERSEDED = "superseded"
    NEW_SLICES = "new_slices"
    LATE_SLICE = "late_slice"
    CHANGED_SLICE = "changed_slice"
    FAILED_SLICE = "failed_slice"
    FAILED_BEFORE = "failed_before"
    OTHER_ORDER = "other_order"
    REDECLARED = "redeclared"
    TABLE_GONE = "table_gone"
    TABLE_OLDER = "table_older"
    FILES_GONE = "files_gone"
    UNCLAIMED = "unclaimed"
    LOCKED = "locked"
    DEAD_LOCK = "dead_lock"
    FOREIGN_ROWS = "foreign_rows"
    NO_BUILD = "no_build"
    CUT_OFF = "cut_off"
    REDEFINED = "redefined"
    INPUT_MOVED = "input_moved"
    INPUT_MISSING = "input_missing"
    INPUT_DUE = "input_due"
    OUTPUT_CHANGED = "output_changed"
    OUTPUT_GONE = "output_gone"
    WITHDRAWN = "withdrawn"
    KEPT_AS_FILLED = "kept_as_filled"
    APPENDED_BEFORE = "appended_before"
    UNSEEN = "unseen"
    REFRESH = "refresh"
    UNCHECKED = "unchecked"
    CHECK_FAILED = "check_failed"
    SLICE_GONE = "slice_gone"
    SKIPPED_CHANGED = "skipped_changed"
    INCOMPLETE = "incomplete"
    UNREADABLE = "unreadable"
    VANISHED = "vanished"
    ELSEWHERE = "elsewhere"
    BAD_ROWS = "bad_rows"
    DISABLED = "disabled"
    UNDECLARED = "undeclared"
    UNRECORDED = "unrecorded"
    FAILED_ITEM = "failed_item"
    LEFT_ITEM = "left_item"
    BROKEN = "broken"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why, as a code with parameters."""

    code: Code
    params: Mapping[str, Any] = field(default_factory=dict)


def broken(why: Unknown) -> Reason:
    """Return the reason of a step that an error stands in the way of."""
    return Reason(Code.BROKEN, {"why": why.why, "error": why.code, "remedy": why.remedy})


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person may decide."""

    decision: Decision

    @property
    def verb(self) -> Verb:
        """The verb of the decision."""
        return self.decision.verb


def choices_of(subject: Subject, basis: str, verbs: Iterable[Verb]) -> tuple[Choice, ...]:
    """Return the choices of a person about a subject whose fact is the basis."""
    return tuple(Choice(Decision(subject, verb, basis)) for verb in verbs)


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
        choices: What a person may decide.
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


@dataclass(frozen=True, slots=True)
class Finding:
    """What was noticed and left, with what a person may decide of it."""

    reason: Reason
    subject: Subject
    choices: tuple[Choice, ...] = ()


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
    def left(self) -> tuple[Step, ...]:
        """The steps that a person, or another process, must do something for."""
        return tuple(step for step in self.steps if step.state is not State.READY)
