"""What the other processes of these tests do."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

from tests.records import AUTHOR, REGIONS, found

from lakewright.errors import ItemLocked, LakewrightError
from lakewright.manifest.lease import IsDead, assume_alive
from lakewright.manifest.ledger import Ledger
from lakewright.stores.heartbeat import Heartbeat
from lakewright.stores.process import is_dead, this_process
from lakewright.stores.registry import open_store

Settings = Mapping[str, Any]

COUNTERS = 100
AT_ONCE = 4
"""Slices that a racer looks at before it claims them."""


def shortest_lease(settings: Settings) -> float:
    """Return the seconds of the shortest lease that means the same to all processes at a manifest.

    Processes that ask DynamoDB for the time differ by up to one second, at first.
    """
    return 2.1 if settings["kind"] == "dynamodb" else 1.5


def ledger_in(settings: Settings, is_dead: IsDead = is_dead) -> Ledger:
    return Ledger(open_store(settings), AUTHOR, ids=lambda: str(uuid4()), is_dead=is_dead)


def race(settings: Settings, names: Sequence[str], worker: int) -> list[str]:
    """Claim each of the slices that nobody has, all workers in the same order, and return those won."""
    ledger = ledger_in(settings)
    won = []
    try:
        for start in range(0, len(names), AT_ONCE):
            some = names[start : start + AT_ONCE]
            present = ledger.store.read([found(name).item_id for name in some])
            for name in some:
                if present[found(name).item_id].processing is None and _is_won(ledger, name, worker):
                    won.append(name)
    finally:
        ledger.store.close()
    return won


def counter_of(name: str) -> str:
    """The counter that numbers a slice's commit: racers at different slices mostly have different ones."""
    return f"table {int(name) % COUNTERS}"


def _is_won(ledger: Ledger, name: str, worker: int) -> bool:
    run, counter = this_process(f"run-{worker}"), counter_of(name)
    hour = timedelta(hours=1)  # nobody renews these, however long the race takes
    try:
        ledger.acquire(found(name).item_id, REGIONS, run, duration=hour, token_counter=counter)
    except ItemLocked:
        return False
    return True


def add_up(settings: Settings, times: int, worker: int) -> int:
    """Process `times` slices of its own from beginning to end, and return how many."""
    ledger = ledger_in(settings)
    try:
        names = [f"{worker}-{number}" for number in range(times)]
        for name in names:
            ledger.discover([found(name)])
            claim = ledger.acquire(
                found(name).item_id,
                REGIONS,
                this_process(f"run-{worker}"),
                duration=timedelta(seconds=60),
                token_counter="table",
            )
            ledger.processed(claim, {"watermarks": {"n": {"type": "long", "value": claim.token}}})
    finally:
        ledger.store.close()
    return times


def attempts_at(settings: Settings, names: Sequence[str]) -> list[str]:
    """Try to take each slice, as from a machine that knows of no process here; return how each ended."""
    ledger = ledger_in(settings, is_dead=assume_alive)
    ends = []
    try:
        for name in names:
            item, run = found(name).item_id, this_process("taker")
            try:
                ledger.acquire(item, REGIONS, run, duration=timedelta(seconds=60), token_counter="table")
                ends.append("taken")
            except ItemLocked as locked:
                ends.append("stale" if locked.details["is_stale"] else "held")
    finally:
        ledger.store.close()
    return ends


def open_and_close(settings: Settings, _worker: int) -> bool:
    """Open the store, which nobody may have made yet."""
    open_store(settings).close()
    return True


def hold(settings: Settings, name: str, seconds: float) -> None:
    """Claim a slice, say so, keep it until a line comes in, and tell whether a commit would be allowed."""
    ledger = ledger_in(settings)
    duration = timedelta(seconds=seconds)
    with Heartbeat(ledger.store, duration) as heartbeat:
        claim = ledger.acquire(
            found(name).item_id, REGIONS, this_process("holder"), duration=duration, token_counter="table"
        )
        heartbeat.keep(claim.lease)
        print("held", flush=True)
        sys.stdin.readline()
        try:
            heartbeat.check(claim.lease)
            print("may commit", flush=True)
        except LakewrightError as error:
            print(type(error).__name__, flush=True)
        try:
            ledger.processed(claim, {})
            print("processed", flush=True)
        except LakewrightError as error:
            print(type(error).__name__, flush=True)
