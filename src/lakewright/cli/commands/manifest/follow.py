"""`lakewright manifest watch`: records as they come."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.items import entity_application, recorded_application
from lakewright.cli.render.items import record_line, stale_lock_page
from lakewright.cli.signals import Stopper, listening
from lakewright.manifest.item import Verdict
from lakewright.manifest.lock import Lock
from lakewright.manifest.record import Application, Record, State
from lakewright.manifest.store import Query

__all__ = ["watch"]

BREATH = 0.1
"""Seconds between two looks at whether to stop."""

STATES = [state.value.lower() for state in State]


@command(
    name="watch",
    examples=[
        "lakewright manifest watch",
        "lakewright manifest watch --state failed --state resolved -o json",
    ],
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    help="Only records of this state.",
)
@click.option("--application", metavar="NAME", help="Only for this application: name, or name:instance.")
@click.option("--entity", metavar="NAME", help="Only slices of this entity.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to look.",
)
@click.pass_obj
def watch(
    call: Call, /, *, states: tuple[str, ...], application: str | None, entity: str | None, every: float
) -> None:
    """Print records as they are added, until Ctrl-C; under `-o json` each is a line of JSON.

    A lock that nobody stands behind any more is told once, where PROCESSING is among the states.
    """
    from lakewright.manifest.record_feed import RecordFeed

    wanted = frozenset(State(state.upper()) for state in states) or frozenset(State)
    only = recorded_application(call.app, application) if application else None
    if entity is not None:
        only = entity_application(call.app, entity)
    watched = RecordFeed(call.app.store, only)
    told: Mapping[str, Lock] = {}
    with listening(lambda _: None) as stopper:
        call.output.note("Watching the manifest; Ctrl-C ends it.")
        while stopper.signal is None:
            for record in watched.new_records():
                if record.state in wanted:
                    _tell(call, record)
            if State.PROCESSING in wanted:
                told = _tell_stale(call, only, told)
            _pause(stopper, every)


def _pause(stopper: Stopper, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while stopper.signal is None and time.monotonic() < deadline:
        time.sleep(BREATH)


def _tell(call: Call, record: Record) -> None:
    if call.output.is_json:
        _tell_json(call, record.as_json())
    else:
        call.output.page([record_line(record)])


def _tell_stale(call: Call, only: Application | None, told: Mapping[str, Lock]) -> Mapping[str, Lock]:
    """Tell of locks that have become stale, and return all that are."""
    locked = call.app.store.select(Query(application=only, verdicts=frozenset({Verdict.LOCKED})))
    stale = {lock.processing.record_id: lock for lock in call.app.ledger.stale_locks(locked)}
    for lock in (lock for record_id, lock in stale.items() if record_id not in told):
        if call.output.is_json:
            _tell_json(call, {"alert": "stale_lock", **lock.as_json()})
        else:
            call.output.page(stale_lock_page(lock, call.at))
    return stale


def _tell_json(call: Call, document: Mapping[str, Any]) -> None:
    text = json.dumps(call.output.redacted(document), ensure_ascii=False, default=str)
    call.output.out.write(f"{text}\n")
    call.output.out.flush()
