"""Leases are kept alive while work goes on, and whoever lost one notices before a commit."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.records import MINUTE, Clock, holder, numbered

from lakewright.errors import LeaseLost, StoreUnavailable
from lakewright.manifest.lease import Leases, find_lease
from lakewright.manifest.store import Write, Written
from lakewright.stores.heartbeat import Heartbeat, seconds_awake
from lakewright.stores.memory import MemoryStore

KEY = "write table:x"


class Flaky(MemoryStore):
    """A store that can be out of reach."""

    is_away = False
    writes = 0

    def write(self, write: Write) -> Written:
        if self.is_away:
            raise StoreUnavailable("away")
        self.writes += 1
        return super().write(write)


class Stage:
    """A store and a process's clock, which go together until they are told otherwise; no thread runs."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = Flaky(self.clock)
        self.seconds = 0.0
        self.leases = Leases(self.store, holder(), numbered(), MINUTE)
        self.heartbeat = Heartbeat(self.store, MINUTE, clock=lambda: self.seconds)
        self.lease = self.leases.acquire(KEY)
        self.heartbeat.keep(self.lease)

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.seconds += seconds


def test_renewed_in_time_a_lease_allows_a_commit() -> None:
    stage = Stage()
    for _ in range(4):
        stage.pass_time(59)
        stage.heartbeat.beat()
    stage.heartbeat.check(stage.lease)


def test_not_renewed_for_its_duration_it_allows_none_though_nobody_took_it() -> None:
    stage = Stage()
    stage.pass_time(60)
    with pytest.raises(LeaseLost, match="not been renewed for 60 s"):
        stage.heartbeat.check(stage.lease)


def test_a_process_that_stood_still_notices_though_the_stores_clock_did_not_move() -> None:
    stage = Stage()
    stage.seconds += 61
    with pytest.raises(LeaseLost):
        stage.heartbeat.check(stage.lease)


@pytest.mark.parametrize("beats", [True, False])
def test_taken_over_it_allows_none(beats: bool) -> None:
    stage = Stage()
    stage.leases.release(stage.lease)
    Leases(stage.store, holder("run-2", pid=2), numbered("other"), MINUTE).acquire(KEY)
    if beats:
        stage.heartbeat.beat()
    with pytest.raises(LeaseLost, match="run-2"):
        stage.heartbeat.check(stage.lease)
    lease = find_lease(stage.store, KEY)
    assert lease is not None
    assert lease.holder.run_id == "run-2"


def test_a_store_out_of_reach_for_a_while_costs_nothing() -> None:
    stage = Stage()
    stage.pass_time(30)
    stage.store.is_away = True
    stage.heartbeat.beat()
    stage.store.is_away = False
    stage.pass_time(20)
    stage.heartbeat.beat()
    stage.pass_time(59)
    stage.heartbeat.check(stage.lease)


def test_a_store_out_of_reach_for_too_long_costs_the_lease() -> None:
    stage = Stage()
    stage.store.is_away = True
    for _ in range(3):
        stage.pass_time(20)
        stage.heartbeat.beat()
    stage.store.is_away = False
    with pytest.raises(LeaseLost):
        stage.heartbeat.check(stage.lease)


def test_an_error_that_a_renewal_did_not_expect_costs_no_other_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended the thread, so that all leases of a run were lost."""
    stage = Stage()
    other = stage.leases.acquire("write table:y")
    stage.heartbeat.keep(other)
    stage.pass_time(30)
    write, failures = stage.store.write, iter([KeyError("expires")])

    def fail_once(changes: Write) -> Written:
        for error in failures:
            raise error
        return write(changes)

    monkeypatch.setattr(stage.store, "write", fail_once)
    stage.heartbeat.beat()
    stage.pass_time(40)
    stage.heartbeat.check(other)
    with pytest.raises(LeaseLost, match="write table:x"):
        stage.heartbeat.check(stage.lease)


def test_a_slow_renewal_counts_from_its_beginning() -> None:
    stage = Stage()
    slowly = stage.store.write

    def write(write: Write) -> Written:
        written = slowly(write)
        stage.seconds += 50
        return written

    stage.store.write = write  # type: ignore[method-assign]  # a fake that takes its time
    stage.heartbeat.beat()
    stage.seconds += 10
    with pytest.raises(LeaseLost):
        stage.heartbeat.check(stage.lease)


def test_what_is_not_kept_or_dropped_allows_nothing() -> None:
    stage = Stage()
    stage.heartbeat.drop(stage.lease)
    stage.heartbeat.drop(stage.lease)
    with pytest.raises(LeaseLost, match="isn't being renewed"):
        stage.heartbeat.check(stage.lease)
    before = stage.store.writes
    stage.heartbeat.beat()
    assert stage.store.writes == before


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    def wait_until(is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 10
        while not is_so():
            assert time.monotonic() < deadline
            time.sleep(0.005)

    return wait_until


def test_a_thread_beats_until_the_block_ends(eventually: Callable[[Callable[[], bool]], None]) -> None:
    store = Flaky()
    duration = timedelta(seconds=0.3)
    with Heartbeat(store, duration) as heartbeat:
        lease = Leases(store, holder(), numbered(), duration).acquire(KEY)
        heartbeat.keep(lease)
        eventually(lambda: store.writes > 3)
        store.is_away = True
        time.sleep(0.15)
        store.is_away = False
        eventually(lambda: store.writes > 6)
    after = store.writes
    time.sleep(0.3)
    assert store.writes == after


def test_time_never_goes_back() -> None:
    assert seconds_awake() <= seconds_awake()


def test_a_lease_that_is_kept_already_stays_renewed() -> None:
    """Slices of one commit are kept while they are claimed; one of them may go on by itself."""
    stage = Stage()
    stage.pass_time(59)
    stage.heartbeat.beat()
    stage.heartbeat.keep(stage.lease)
    stage.pass_time(59)
    stage.heartbeat.beat()
    stage.heartbeat.check(stage.lease)
