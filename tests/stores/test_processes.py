"""Several processes at one manifest: exactly one holds an item, and the dead hold nothing.

`processing-manifest.md`, "State" (Processing) and "Challenges" (absence of race conditions).
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from multiprocessing import get_context
from multiprocessing.pool import Pool
from typing import Any

import pytest
from tests.records import REGIONS, found
from tests.stores.workers import COUNTERS, add_up, ledger_in, open_and_close, race, shortest_lease

from lakewright.errors import ItemLocked
from lakewright.manifest.claim import Claim
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.store import Query
from lakewright.manifest.verdict import Verdict
from lakewright.stores.process import this_process
from lakewright.upkeep.fsck import fsck

Settings = dict[str, Any]

FEW, MANY = 4, 8
LOCKS: Mapping[int, int] = {FEW: 100, MANY: 1_000}
"""How many locks so many processes race for."""
# DynamoDB Local takes a few milliseconds for each request.
LOCKS_IN_DYNAMODB: Mapping[int, int] = {FEW: 100, MANY: 200}


@pytest.fixture
def ledger(shared_settings: Settings) -> Iterator[Ledger]:
    found_ledger = ledger_in(shared_settings)
    yield found_ledger
    found_ledger.store.close()


class SideBySide:
    """Runs work in several processes at once, and returns what it returns in each."""

    def __init__(self, pool: Pool, racers: int) -> None:
        self.pool = pool
        self.racers = racers

    def __call__(self, work: Callable[[int], Any]) -> list[Any]:
        return self.pool.map(work, range(self.racers), chunksize=1)


@pytest.fixture(scope="module", params=[FEW, pytest.param(MANY, marks=pytest.mark.nightly)])
def side_by_side(request: pytest.FixtureRequest) -> Iterator[SideBySide]:
    with get_context("spawn").Pool(request.param) as pool:
        yield SideBySide(pool, request.param)


def take(ledger: Ledger, name: str, **options: Any) -> Claim:
    run = this_process("taker")
    given = {"duration": timedelta(seconds=60), "token_counter": "table", **options}
    return ledger.acquire(found(name).item_id, REGIONS, run, **given)


def take_when_free(ledger: Ledger, name: str) -> Claim:
    """Take a slice as soon as its holder's lease has run out."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            return take(ledger, name)
        except ItemLocked:
            time.sleep(0.1)
    return take(ledger, name)


@contextmanager
def holder_of(settings: Settings, name: str, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that holds a slice by a lease of some seconds, renewed by its heartbeat."""
    given = f"json.loads({json.dumps(settings)!r}), {name!r}, {seconds}"
    code = f"import json; from tests.stores.workers import hold; hold({given})"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[str]) -> list[str]:
    answer, _ = process.communicate("go on\n", timeout=60)
    return answer.split("\n")[:-1]


def test_each_item_has_exactly_one_winner_and_losers_write_nothing(
    shared_settings: Settings, ledger: Ledger, side_by_side: SideBySide
) -> None:
    is_dynamodb = shared_settings["kind"] == "dynamodb"
    locks = (LOCKS_IN_DYNAMODB if is_dynamodb else LOCKS)[side_by_side.racers]
    names = [f"{number:04}" for number in range(locks)]
    ledger.discover(found(name) for name in names)
    winners = side_by_side(partial(race, shared_settings, names))
    assert sorted(name for won in winners for name in won) == names
    items = list(ledger.store.select(Query()))
    assert [item.sequence for item in items] == [2] * locks
    numbers = Counter(item.processing.note["token"] for item in items if item.processing)
    assert numbers == dict.fromkeys(range(1, locks // COUNTERS + 1), COUNTERS)
    assert list(fsck(ledger.store)) == []


def test_work_of_many_processes_adds_up(
    shared_settings: Settings, ledger: Ledger, side_by_side: SideBySide
) -> None:
    done = sum(side_by_side(partial(add_up, shared_settings, 10)))
    assert ledger.store.counts() == {(REGIONS, Verdict.PROCESSED): done}
    assert ledger.watermarks.last(REGIONS)["n"].value == done
    assert list(fsck(ledger.store)) == []


def test_all_may_be_first(shared_settings: Settings, side_by_side: SideBySide) -> None:
    assert all(side_by_side(partial(open_and_close, shared_settings)))


def test_a_killed_holder_is_taken_over_at_once(shared_settings: Settings, ledger: Ledger) -> None:
    ledger.discover([found()])
    name = found().slice
    with holder_of(shared_settings, name, 60) as process:
        with pytest.raises(ItemLocked, match="run holder"):
            take(ledger, name)
        process.send_signal(signal.SIGKILL)
        process.wait()
        with pytest.raises(ItemLocked, match="has ended"):
            take(ledger, name, takeover="operator")
        claim = take(ledger, name)
    assert claim.token == 1
    states = [record.state for record in ledger.store.records(found().item_id)]
    assert states == ["NEW", "PROCESSING", "RESOLVED", "PROCESSING"]


def test_a_heartbeat_keeps_a_lease_for_longer_than_it_lasts(
    shared_settings: Settings, ledger: Ledger
) -> None:
    ledger.discover([found()])
    lease = shortest_lease(shared_settings)
    with holder_of(shared_settings, found().slice, lease) as process:
        time.sleep(1.5 * lease)
        with pytest.raises(ItemLocked):
            take(ledger, found().slice)
        assert told(process) == ["may commit", "processed"]


def test_a_holder_that_stood_still_may_neither_commit_nor_finish(
    shared_settings: Settings, ledger: Ledger
) -> None:
    ledger.discover([found()])
    with holder_of(shared_settings, found().slice, shortest_lease(shared_settings)) as process:
        process.send_signal(signal.SIGSTOP)
        claim = take_when_free(ledger, found().slice)
        process.send_signal(signal.SIGCONT)
        assert told(process) == ["LeaseLost", "LeaseLost"]
    ledger.processed(claim, {})
    states = [record.state for record in ledger.store.records(found().item_id)]
    assert states == ["NEW", "PROCESSING", "RESOLVED", "PROCESSING", "PROCESSED"]
