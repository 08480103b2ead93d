"""The state of a trigger: which runs are due, which one runs, and how the last one ended.

A frozen value and the functions that change it. They know no clock, store or process: times are passed in,
and the manifest keeps the value, so that another server continues where one has died.

A trigger with several `entities` has one state for each of them, so that an entity that fails does not hold
up the others. One run is active at a time. Of the runs that become due meanwhile the latest is remembered;
with `catch_up: all`, every one.

Source: the rules of the server, "Triggers".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import takewhile
from typing import Any

from lakewright.manifest.plain_values import document_of, of_json
from lakewright.spec.cron import due_times, find_zone
from lakewright.spec.models.trigger import CatchUp, Trigger

GRACE = timedelta(minutes=1)
"""A time that passed longer ago than this, while no server looked, is missed: `catch_up` decides about it."""

MOST_PENDING = 1_000
"""The largest number of runs that `catch_up: all` remembers: a cron of each minute has 1,440 times a day."""

CLOCK_STEP = timedelta(hours=1)
"""A clock set back by less repeats no run. If it is set back by more, it was wrong before."""

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=10)
"""The pause before the first retry, doubled before each further one, and the longest pause."""

SERVER_ENDED = "was stopped or killed during the run"
"""What is said of a run whose server ended."""

JITTER = 0.25
"""Pauses are longer or shorter by up to this share, so that servers that failed together retry apart."""

_DOUBLINGS = 20
"""Exponents beyond this change nothing: the pause is the longest by then."""


class Result(StrEnum):
    """How a run of a trigger ended.

    RETRY is a failure that may pass by itself: a lock of another run, storage or a database that does not
    answer, an interrupted process, a JVM that ended. FAILED waits for an operator, or for the next time that
    is due.
    """

    SUCCEEDED = "succeeded"
    RETRY = "retry"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A run that was started; `number` counts the attempts at this due time."""

    due: datetime
    started: datetime
    number: int = 1


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ended.

    Attributes:
        message: Why it did not succeed.
        run_id: The run in the history, if it got that far.
        warnings: What its slices and targets warned of, such as a column that a slice lacks.
    """

    due: datetime
    started: datetime
    finished: datetime
    result: Result
    message: str = ""
    run_id: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TriggerState:
    """What the manifest keeps of a trigger, or of one of its entities.

    Attributes:
        schedule: Cron expression and time zone that `looked` belongs to.
        looked: Times of the schedule up to this one have been dealt with.
        pending: The times for which a run is due, in order.
        mark: What the last run on an event dealt with, as `observe` got it; None before the first look.
        running: The run that was started and has not ended.
        failures: How many attempts in a row were followed by a retry.
        retry_at: The time before which the next attempt does not start.
        waits: Why it waits for an operator, or empty.
        last: How the last attempt ended.
        is_paused: Whether an operator has paused it.
        is_asked: Whether an operator has asked for a run, which then starts even if there is nothing to do.
    """

    schedule: str = ""
    looked: datetime | None = None
    pending: tuple[datetime, ...] = ()
    mark: str | None = None
    running: Attempt | None = None
    failures: int = 0
    retry_at: datetime | None = None
    waits: str = ""
    last: Ending | None = None
    is_paused: bool = False
    is_asked: bool = False

    def look(self, trigger: Trigger, now: datetime) -> TriggerState:
        """Return the state after a look at the clock: times of the schedule that have passed are pending."""
        if trigger.cron is None:
            return self
        schedule = f"{trigger.cron} {trigger.timezone}"
        if self.looked is None or schedule != self.schedule or self.looked > now + CLOCK_STEP:
            return replace(self, schedule=schedule, looked=now)
        passed = _passed(trigger, self.looked, now)
        if trigger.catch_up is CatchUp.NONE:
            passed = [at for at in passed if now - at <= GRACE]
        pending = _kept((*self.pending, *passed), trigger)
        return replace(self, looked=max(self.looked, now), pending=pending)

    def observe(self, mark: str, now: datetime, *, is_baseline: bool = False) -> TriggerState:
        """Return the state after a look at what the trigger waits for.

        Args:
            mark: Identifies what there is to do: equal marks are the same work. Empty if there is nothing.
            now: The present time.
            is_baseline: Whether what is there at the first look counts as done before.
        """
        if self.mark is None and is_baseline:
            return replace(self, mark=mark)
        if not mark and (self.is_asked or (self.mark == "" and not self.pending)):
            return self
        if not mark:
            # What comes back later, such as a slice that an operator has resolved, is work again.
            return replace(self, mark="", pending=(), failures=0, retry_at=None, waits="")
        if mark == self.mark:
            return self
        return replace(self, pending=self.pending or (now,))

    def ask(self, now: datetime) -> TriggerState:
        """Return the state after an operator has asked for a run now."""
        pending = self.pending or (now,)
        return replace(self, pending=pending, retry_at=None, waits="", is_asked=True)

    def paused(self, is_paused: bool) -> TriggerState:
        """Return the state as an operator has paused or resumed it."""
        return replace(self, is_paused=is_paused)

    def due(self, now: datetime) -> datetime | None:
        """Return the time for which a run must start now, or None."""
        if self.running is not None or self.is_paused or not self.pending:
            return None
        retry_at = self.retry_at
        # A retry that lies further ahead than any pause was planned before the clock was set back.
        is_early = retry_at is not None and now < retry_at <= now + LONGEST_PAUSE * (1 + JITTER)
        return None if is_early else self.pending[0]

    def start(self, now: datetime, mark: str | None = None) -> TriggerState:
        """Return the state with the first pending run started, which deals with `mark`."""
        attempt = Attempt(self.pending[0], now, self.failures + 1)
        return replace(
            self,
            running=attempt,
            pending=self.pending[1:],
            retry_at=None,
            is_asked=False,
            mark=self.mark if mark is None else mark,
        )

    def finish(self, trigger: Trigger, ending: Ending, jitter: float = 0.5) -> TriggerState:
        """Return the state after the run has ended.

        Args:
            trigger: The trigger.
            ending: How it ended.
            jitter: A number from 0 to 1 that varies the pause before a retry.
        """
        ended = replace(self, running=None, last=ending, failures=0, retry_at=None, waits="")
        if ending.result is Result.SUCCEEDED:
            return ended
        if ending.result is Result.FAILED:
            return replace(ended, waits=ending.message or "it failed")
        return replace(
            ended,
            failures=self.failures + 1,
            retry_at=ending.finished + _pause(self.failures, jitter),
            pending=_kept((ending.due, *self.pending), trigger),
        )

    def interrupt(self, trigger: Trigger, now: datetime, jitter: float = 0.5) -> TriggerState:
        """Return the state of a trigger whose server ended during a run: the run is repeated."""
        if self.running is None:
            return self
        message = f"the server that ran it {SERVER_ENDED}"
        ending = Ending(self.running.due, self.running.started, now, Result.RETRY, message)
        return self.finish(trigger, ending, jitter)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form of the state."""
        return document_of(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> TriggerState:
        """Return the state of a value that `as_json` returned."""
        return of_json(cls, value)


def next_due(trigger: Trigger, now: datetime) -> datetime | None:
    """Return the next time of a trigger's schedule, or None if it has none."""
    if trigger.cron is None:
        return None
    return next(due_times(trigger.cron, find_zone(trigger.timezone), now), None)


def _passed(trigger: Trigger, after: datetime, now: datetime) -> list[datetime]:
    """Return the times of the schedule after one instant up to another, at most the newest of them.

    Of a long absence only the newest times are wanted: they are looked for in longer and longer spans.
    """
    zone, begin, step = find_zone(trigger.timezone), now, timedelta(days=1)
    found: list[datetime] = []
    while begin > after and len(found) < MOST_PENDING:
        begin, step = max(after, now - step), step * 2
        found = list(takewhile(lambda at: at <= now, due_times(trigger.cron or "", zone, begin)))
    return found[-MOST_PENDING:]


def _kept(times: tuple[datetime, ...], trigger: Trigger) -> tuple[datetime, ...]:
    is_all = trigger.cron is not None and trigger.catch_up is CatchUp.ALL
    return tuple(sorted(set(times)))[-MOST_PENDING if is_all else -1 :]


def _pause(failures: int, jitter: float) -> timedelta:
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * float(2 ** min(failures, _DOUBLINGS)))
    varied: timedelta = pause * (1 - JITTER + 2 * JITTER * jitter)
    return varied
