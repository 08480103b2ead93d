"""The inbox: what needs a person, with its cause, since when, what waits behind it, and what to do.

It reads what is wrong and counts the rest, so that what it costs does not grow with the slices that are fine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from lakewright.app import App
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.journal import RUNNING, Run
from lakewright.manifest.lease import LEASE, Lease
from lakewright.manifest.lock import Lock
from lakewright.manifest.record import format_instant
from lakewright.manifest.settings import is_taken_over
from lakewright.manifest.store import Query
from lakewright.usecases.answered_warnings import unanswered
from lakewright.usecases.concerns import (
    MOST,
    Concern,
    concern_of_blocked,
    concern_of_item,
    concern_of_lock,
    concern_of_run,
    concern_of_tainted,
    concern_of_trigger,
    concern_of_waiting,
    concern_of_warning,
    concerns_of_files,
    concerns_of_manifest,
)
from lakewright.usecases.entity_standing import EntityStanding, Standings, read_standings
from lakewright.usecases.failed_runs.checks_left import next_steps
from lakewright.usecases.failed_runs.next_slices import NextSlices
from lakewright.usecases.failed_runs.undone_runs import builds_left, runs_to_resume
from lakewright.usecases.history import alike_once
from lakewright.usecases.items import typed_name
from lakewright.usecases.observed_lake import (
    Observed,
    concerns_of_gold,
    concerns_of_records,
    concerns_of_silver,
    observed_notices,
)
from lakewright.usecases.slice_times.refused_times import blocking_time, ready_timed, refused_waiting
from lakewright.usecases.staleness.tainted_targets import tainted_targets
from lakewright.usecases.status import warned_beside, warned_targets
from lakewright.usecases.triggers import TriggerStatus, list_triggers, repeated_runs

__all__ = ["Inbox", "read_inbox"]

RECENT = 200
LAST_RUNS = 8


@dataclass(frozen=True, slots=True)
class Inbox:
    """What needs a person, and what goes on besides.

    Attributes:
        concerns: What needs a person, by kind; those with most slices behind them first.
        hidden: How many more there are of each kind.
        running: Runs that are running.
        locked: Items that are being processed.
        standings: How the entities stand.
        last_runs: The latest runs.
        triggers: The triggers with their states.
        notices: What an operator should know of, but need not act on: slices that are gone, rows put aside,
            tables that were not looked at.
        seen: When the lake was looked at for them; None if it was not yet.
    """

    concerns: tuple[Concern, ...]
    hidden: Mapping[str, int]
    running: tuple[Run, ...]
    locked: tuple[Lock, ...]
    standings: Standings
    last_runs: tuple[Run, ...]
    now: datetime
    waiting: tuple[EntityStanding, ...] = field(default=())
    triggers: tuple[TriggerStatus, ...] = ()
    notices: tuple[Concern, ...] = ()
    seen: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the inbox as the API shows it."""
        return {
            "concerns": [each.as_json() for each in self.concerns],
            "hidden": dict(self.hidden),
            "running": [run.run_id for run in self.running],
            "locked": [lock.as_json() for lock in self.locked],
            "waiting": {each.name: each.standing.count(Verdict.READY) for each in self.waiting},
            "triggers": [each.as_json() for each in self.triggers],
            "notices": [each.as_json() for each in self.notices],
            "seen": None if self.seen is None else format_instant(self.seen),
        }


def read_inbox(app: App, observed: Observed | None = None) -> Inbox:
    """Return what needs a person.

    Args:
        app: The project.
        observed: What a look at the lake found; without it, slices that changed or are gone, rows that were
            put aside, and tables that need a rebuild, are left out.
    """
    store = app.store
    now = store.now()
    standings = read_standings(app, with_last_slices=False)
    ready = {each.application.key: each.standing.count(Verdict.READY) for each in standings.entities}
    runs = tuple(app.journal.runs(RECENT))
    locks = _locks(app, islice(store.select(Query(verdicts=frozenset({Verdict.LOCKED}))), MOST), now)
    broken = islice(store.select(Query(verdicts=frozenset({Verdict.FAILED, Verdict.INVALID}))), MOST)
    failed = sorted((concern_of_item(item, ready, typed_name(app, item)) for item in broken), key=_urgency)
    is_auto = is_taken_over(app.project.manifest)
    stale = [
        concern_of_lock(lock, item, typed_name(app, item), is_taken_over=is_auto)
        for lock, item in locks
        if lock.is_stale
    ]
    running = tuple(run for run in runs if run.status == RUNNING)
    failures, triggers = runs_to_resume(app, runs), list_triggers(app)
    repeated = repeated_runs(triggers)
    listed = [run for run in failures if run.run_id not in repeated]
    running_ids = {run.run_id for run in running}
    tainted = tuple(
        tainted_targets(app, {run.run_id for run in failures}, running_ids, builds_left(app, failures))
    )
    corrected = () if observed is None else observed.bronze.corrected
    steps = next_steps(app, listed[:MOST], NextSlices(app), tainted, corrected)
    undone = {run.run_id: concern_of_run(app, run, steps[run.run_id]) for run in listed[:MOST]}
    seen = () if observed is None else (*observed.bronze.unreadable, *observed.bronze.changed)
    warnings = list(warned_beside(unanswered(app, warned_targets(app.journal, runs), runs), seen))
    warned = [concern_of_warning(each) for each in alike_once(warnings)[:MOST]]
    waiting = {each.name for each in standings.entities if each.standing.count(Verdict.READY)}
    timed = list(ready_timed(app, waiting))
    blocked = {
        entity.called: error.as_fault()
        for entity, names in timed
        if (error := blocking_time(app, entity, names)) is not None
    } | dict(() if observed is None else observed.bronze.blocked)
    times = (
        (entity.called, early)
        for entity, names in timed
        if names and entity.called not in blocked
        if (early := refused_waiting(app, entity.called, names[0])) is not None
    )
    refused = [concern_of_waiting(*each) for each in islice(times, MOST)]
    refused += [concern_of_blocked(*each) for each in islice(blocked.items(), MOST)]
    stuck = [concern_of_trigger(each) for each in triggers if each.has_failed]
    return Inbox(
        concerns=(
            *concerns_of_files(app.project),
            *concerns_of_manifest(app),
            *(() if observed is None else concerns_of_records(observed)),
            *failed,
            *stale,
            *(() if observed is None else concerns_of_silver(app, observed, warnings, ready)),
            *(() if observed is None else concerns_of_gold(observed, tainted)),
            *(each for run_id, each in undone.items() if not steps[run_id].comes_last),
            *refused,
            *stuck,
            *warned,
            *map(concern_of_tainted, tainted[:MOST]),
            *(each for run_id, each in undone.items() if steps[run_id].comes_last),
        ),
        hidden=_hidden(app, len(failed)),
        running=running,
        locked=tuple(lock for lock, _ in locks if not lock.is_stale),
        standings=standings,
        last_runs=runs[:LAST_RUNS],
        now=now,
        waiting=tuple(each for each in standings.entities if each.standing.count(Verdict.READY)),
        triggers=triggers,
        notices=() if observed is None else tuple(observed_notices(observed)),
        seen=None if observed is None else observed.at,
    )


def _hidden(app: App, shown: int) -> dict[str, int]:
    """Return how many failed items are not listed, if all that may be read were."""
    if shown < MOST:
        return {}
    broken = (Verdict.FAILED, Verdict.INVALID)
    total = sum(number for standing, number in app.store.standings().items() if standing.blocked in broken)
    return {"failed": total - shown} if total > shown else {}


def _urgency(concern: Concern) -> tuple[int, float]:
    return (-concern.behind, concern.since.timestamp() if concern.since else 0.0)


def _locks(app: App, items: Iterable[Item], now: datetime) -> list[tuple[Lock, Item]]:
    listed = list(items)
    seen = app.store.look_up(keys=[(LEASE, item.item_id) for item in listed]).documents
    found = []
    for item in listed:
        document = seen.get((LEASE, item.item_id))
        lease = None if document is None else Lease.from_document(document)
        lock = Lock.of(item, lease, now=now, is_dead=app.journal.is_dead)
        if lock is not None:
            found.append((lock, item))
    return found
