"""The scheduler: it holds triggers by leases, looks what is due, starts runs and records how they ended.

It does one round at a time and waits for nothing: another thread calls `round` again and again. All that
matters is in the manifest before it is acted upon, so that a server which dies at any moment loses nothing.

Source: the rules of the server, "Triggers".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from random import random
from typing import Protocol

from lakewright.errors import LakewrightError, LeaseHeld, LeaseLost, SequenceConflict
from lakewright.manifest.lease import Lease, Leases
from lakewright.spec.models.trigger import Trigger, TriggerEvent
from lakewright.stores.heartbeat import seconds_awake
from lakewright.triggers.records import Lane, SavedState, TriggerRecords, lease_key
from lakewright.triggers.state import Attempt, Ending, Result, TriggerState, next_due

log = logging.getLogger(__name__)

RENEWALS = 3
"""A lease is renewed this many times within its duration."""

ATTEMPT_SECONDS = 2.0
"""The pause between two attempts at a lease that another server holds."""

READ_SECONDS = 2.0
"""The states are read anew this often, for what operators have changed, and after each own change."""


class Looks(Protocol):
    """Looks at what triggers on events wait for."""

    def begin(self) -> None:
        """Begin a round of looks."""
        ...

    def mark(self, trigger: Trigger) -> str | None:
        """Return what there is to do; see `lakewright.triggers.observer.Observer`."""
        ...

    def processed(self, trigger: Trigger) -> str:
        """Return the mark of what was processed up to now, also while a slice is being processed."""
        ...

    def forget(self, trigger: Trigger) -> None:
        """Look at all that a trigger waits for anew."""
        ...


Start = Callable[[Lane, Trigger, Attempt], Future[Ending]]
"""Begins a run and returns at once; the result is how it ended."""


@dataclass(slots=True)
class _Held:
    """A trigger that this process runs.

    Attributes:
        renew_at: When its lease is renewed next, in the seconds that the scheduler counts.
        next: The schedule of each lane with its next time, and when that was computed.
    """

    lease: Lease
    renew_at: float
    next: dict[Lane, tuple[str, datetime, datetime | None]] = field(default_factory=dict)


@dataclass
class Scheduler:
    """The triggers of one project that this process runs.

    Attributes:
        leases: Takes and renews the leases on triggers.
        start: Begins a run.
        clock: Returns the present time, in UTC.
        jitter: Returns numbers from 0 to 1, which vary the pauses before retries.
        seconds: Counts seconds, whatever happens to the clock.
    """

    project: str
    leases: Leases
    start: Start
    clock: Callable[[], datetime]
    jitter: Callable[[], float] = random  # noqa: S311 - it guards nothing
    seconds: Callable[[], float] = seconds_awake
    _held: dict[str, _Held] = field(default_factory=dict, init=False)
    _running: dict[Lane, Future[Ending]] = field(default_factory=dict, init=False)
    _logged: dict[str, str] = field(default_factory=dict, init=False)
    _attempt_at: dict[str, float] = field(default_factory=dict, init=False)
    _saved: Mapping[Lane, SavedState] = field(default_factory=dict, init=False)
    _read_at: float | None = field(default=None, init=False)

    @property
    def held(self) -> frozenset[str]:
        """The names of the triggers that this process runs."""
        return frozenset(self._held)

    def round(self, triggers: Mapping[str, Trigger], looks: Looks) -> None:
        """Hold what can be held, record what has ended, and start what is due.

        Raises:
            StoreUnavailable: The manifest does not answer. Nothing is lost; the next round goes on.
        """
        records = TriggerRecords(self.leases.store, self.project)
        active = {name: trigger for name, trigger in triggers.items() if trigger.enabled}
        for name in [*self._held]:
            if name not in active and not any(lane.trigger == name for lane in self._running):
                self._release(name)
        for name in active:
            self._hold(name)
        self._record_endings(records, triggers, looks)
        saved = self._states(records)
        looks.begin()
        for name, trigger in active.items():
            if name in self._held:
                for lane in lanes(name, trigger):
                    self._advance(records, lane, trigger, saved.get(lane, SavedState()), looks)

    def _states(self, records: TriggerRecords) -> Mapping[Lane, SavedState]:
        """Return the states as they were read last; a write fails if they have changed since."""
        now = self.seconds()
        if self._read_at is None or not 0 <= now - self._read_at < READ_SECONDS:
            self._saved, self._read_at = records.all(), now
        return self._saved

    def settle(self, triggers: Mapping[str, Trigger], looks: Looks) -> None:
        """Record how runs have ended, and start nothing.

        Raises:
            StoreUnavailable: The manifest does not answer.
        """
        self._record_endings(TriggerRecords(self.leases.store, self.project), triggers, looks)

    def release(self) -> None:
        """Give up every trigger, so that another server can take it at once."""
        for name in [*self._held]:
            self._release(name)

    def _release(self, name: str) -> None:
        self.leases.release(self._held.pop(name).lease)

    def _hold(self, name: str) -> None:
        """Take the lease on a trigger, or renew it when that is due."""
        now, held = self.seconds(), self._held.get(name)
        if now < (self._attempt_at.get(name, now) if held is None else held.renew_at):
            return
        try:
            if held is None:
                lease = self.leases.acquire(lease_key(self.project, name))
                log.info("trigger %s: runs here now", name)
            else:
                lease = self.leases.renew(held.lease)
        except LeaseHeld:
            self._attempt_at[name] = now + ATTEMPT_SECONDS
            return
        except LeaseLost as lost:
            log.warning("trigger %s: this server has lost it: %s", name, lost)
            self._held.pop(name, None)
            return
        if held is None:
            self._read_at = None
        known = {} if held is None else held.next
        self._held[name] = _Held(lease, now + self.leases.duration.total_seconds() / RENEWALS, known)

    def _record_endings(self, records: TriggerRecords, triggers: Mapping[str, Trigger], looks: Looks) -> None:
        """Record how runs ended. If the manifest doesn't answer, the next round does it.

        A run whose end can't be recorded for another reason counts as interrupted.
        """
        for lane, run in list(self._running.items()):
            if not run.done() or run.cancelled():
                continue
            trigger, ending = triggers.get(lane.trigger), run.result()
            if trigger is not None and lane.trigger in self._held:
                self._record(records, lane, trigger, ending, looks)
                _log_ending(lane, ending)
            del self._running[lane]

    def _record(
        self, records: TriggerRecords, lane: Lane, trigger: Trigger, ending: Ending, looks: Looks
    ) -> None:
        how = partial(_finished, trigger=trigger, ending=ending, jitter=self.jitter())
        self._read_at = None
        try:
            if records.change(lane, how, self._held[lane.trigger].lease.token):
                looks.forget(trigger)
        except LakewrightError:
            raise
        except Exception:  # the trigger, and the others, must go on
            log.exception("trigger %s: how its run ended can't be recorded", lane)

    def _advance(
        self, records: TriggerRecords, lane: Lane, trigger: Trigger, saved: SavedState, looks: Looks
    ) -> None:
        """Bring the state of a lane up to the present, and start its run if one is due."""
        if lane in self._running and (saved.state.running is None or trigger.cron is None):
            return
        now, owner = self.clock(), self._held[lane.trigger].lease.token
        state = saved.state
        mark: str | None = None
        if state.running is not None and lane not in self._running:
            state = state.interrupt(trigger, now, self.jitter())
        if trigger.on is not None and state.running is None:
            is_first = trigger.on is TriggerEvent.PROCESSED and state.mark is None
            mark = self._mark(lane, trigger, looks.processed if is_first else looks.mark)
            if mark is not None:
                state = state.observe(mark, now, is_baseline=trigger.on is TriggerEvent.PROCESSED)
        else:
            state = self._look(lane, trigger, state, now)
        is_due = lane not in self._running and state.due(now) is not None
        if is_due:
            state = state.start(now, mark)
        if not is_due and saved.version and saved.owner == owner and not _differs(saved.state, state):
            return
        self._read_at = None
        try:
            records.save(lane, state, saved, owner)
        except SequenceConflict:
            return  # an operator or another server has changed it; the next round sees how
        if is_due and state.running is not None:
            log.info(
                "trigger %s: starts its run of %s", lane, state.running.due.isoformat(timespec="seconds")
            )
            # If that fails, the next round takes it for interrupted, or the trigger would wait for its end.
            self._running[lane] = self.start(lane, trigger, state.running)

    def _look(self, lane: Lane, trigger: Trigger, state: TriggerState, now: datetime) -> TriggerState:
        """Return the state after a look at the clock; the next time is computed only when one has passed."""
        held, schedule = self._held[lane.trigger], f"{trigger.cron} {trigger.timezone}"
        of, computed, at = held.next.get(lane, ("", now, None))
        if of == schedule == state.schedule and at is not None and computed <= now < at:
            return state
        held.next[lane] = (schedule, now, next_due(trigger, now))
        return state.look(trigger, now)

    def _mark(self, lane: Lane, trigger: Trigger, look: Callable[[Trigger], str | None]) -> str | None:
        """Return what there is to do, or None if that can't be seen; why is logged once."""
        try:
            mark = look(trigger if not lane.entity or trigger.of else _only(trigger, lane.entity))
        except LakewrightError as error:
            if self._logged.get(str(lane)) != error.message:
                log.warning("trigger %s: cannot see what is due: %s", lane, error)
                self._logged[str(lane)] = error.message
            return None
        self._logged.pop(str(lane), None)
        return mark


def lanes(name: str, trigger: Trigger) -> tuple[Lane, ...]:
    """Return what of a trigger has a state of its own: each of its entities, or the trigger itself."""
    return tuple(Lane(name, entity) for entity in trigger.entities) or (Lane(name),)


def _only(trigger: Trigger, entity: str) -> Trigger:
    return trigger.model_copy(update={"entities": (entity,)})


def _finished(state: TriggerState, trigger: Trigger, ending: Ending, jitter: float) -> TriggerState:
    """Return the state after a run, unless it was taken for interrupted meanwhile."""
    if state.running is None or state.running.started != ending.started:
        return state
    return state.finish(trigger, ending, jitter)


def _differs(before: TriggerState, after: TriggerState) -> bool:
    """Return whether a state must be saved; that nothing was due up to now need not be."""
    if before is after:
        return False
    if before.looked is None or after.looked is None or after.looked < before.looked:
        return before != after
    return before != replace(after, looked=before.looked)


def _log_ending(lane: Lane, ending: Ending) -> None:
    seconds = (ending.finished - ending.started).total_seconds()
    if not ending.message:
        log.info("trigger %s: its run of %.1f s %s", lane, seconds, ending.result)
        return
    result = "failed, and is tried again" if ending.result is Result.RETRY else ending.result
    log.warning("trigger %s: its run of %.1f s %s: %s", lane, seconds, result, ending.message)
