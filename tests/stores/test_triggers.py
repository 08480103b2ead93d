"""Several servers over one manifest: one runs a trigger, another takes it over when that one is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from tests.stores.relay import Relay

from lakewright.errors import StoreUnavailable
from lakewright.manifest.lease import IsDead, Leases, assume_alive
from lakewright.manifest.store import Store
from lakewright.spec.models.trigger import Trigger
from lakewright.stores.process import is_dead, this_process
from lakewright.stores.registry import open_store
from lakewright.triggers.records import Lane, TriggerRecords
from lakewright.triggers.scheduler import Scheduler
from lakewright.triggers.state import Attempt, Ending, Result

LEASE = timedelta(seconds=2)
TRIGGERS = {
    "gold": Trigger.model_validate(
        {"name": "gold", "job": "gold", "phase": "build", "on": "processed", "of": "orders"}
    )
}


class Looks:
    """Sees the same work at each look."""

    def __init__(self, mark: str) -> None:
        self.seen = mark

    def begin(self) -> None:
        """Do nothing."""

    def mark(self, _: Trigger) -> str | None:
        """Return what there is to do."""
        return self.seen

    def processed(self, _: Trigger) -> str:
        """Return what was processed up to now."""
        return self.seen

    def forget(self, _: Trigger) -> None:
        """Do nothing."""


def scheduler_at(store: Store, started: list[Attempt], dead: IsDead = is_dead) -> Scheduler:
    def start(_lane: Lane, _trigger: Trigger, attempt: Attempt) -> Future[Ending]:
        started.append(attempt)
        return Future()

    leases = Leases(store, this_process("server"), lambda: str(uuid4()), LEASE, dead)
    return Scheduler("shop", leases, start, lambda: datetime.now(UTC), jitter=lambda: 0.0)


def run_until_killed(settings: dict[str, Any]) -> None:
    """Start a run of the trigger, say so, and go on making rounds: the work of the process that is killed."""
    started: list[Attempt] = []
    scheduler = scheduler_at(open_store(settings), started)
    scheduler.round(TRIGGERS, Looks("1"))
    while True:
        scheduler.round(TRIGGERS, Looks("2"))
        if started:
            print("started", flush=True)
        time.sleep(0.1)


@pytest.mark.nightly
def test_another_server_takes_over_within_a_lease_and_repeats_the_run(postgres: dict[str, Any]) -> None:
    store, started = open_store(postgres), list[Attempt]()
    # As a server on another machine, which can't see that the process has ended.
    other = scheduler_at(store, started, assume_alive)
    given = f"json.loads({json.dumps(postgres)!r})"
    code = f"import json; from tests.stores.test_triggers import run_until_killed; run_until_killed({given})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        for _ in range(15):
            other.round(TRIGGERS, Looks("2"))
            time.sleep(0.1)
        assert not other.held  # its lease is renewed
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed = time.monotonic()
    while not other.held and time.monotonic() < killed + 15:
        other.round(TRIGGERS, Looks("2"))
        time.sleep(0.1)
    assert other.held == {"gold"}
    assert time.monotonic() - killed < 2 * LEASE.total_seconds() + 2
    state = TriggerRecords(store, "shop").all()[Lane("gold")].state
    assert state.last is not None
    assert (state.last.result, state.failures) == (Result.RETRY, 1)
    while not started and time.monotonic() < killed + 20:
        other.round(TRIGGERS, Looks("2"))
        time.sleep(0.1)
    (attempt,) = started
    assert attempt.number == 2
    now = datetime.now(UTC)
    other._running[Lane("gold")].set_result(Ending(attempt.due, attempt.started, now, Result.SUCCEEDED))
    other.round(TRIGGERS, Looks("2"))
    other.release()
    assert TriggerRecords(store, "shop").all()[Lane("gold")].state.failures == 0
    store.close()


def test_a_manifest_that_is_gone_for_longer_than_a_lease_loses_no_end_of_a_run_and_repeats_none(
    postgres: dict[str, Any],
) -> None:
    url = urlsplit(postgres["url"])
    assert url.port is not None
    relay = Relay(url.port)
    near = {**postgres, "url": url._replace(netloc=f"postgres@127.0.0.1:{relay.port}").geturl()}
    store, started = open_store(near), list[Attempt]()
    scheduler = scheduler_at(store, started)
    scheduler.round(TRIGGERS, Looks("1"))  # what was there before the first look counts as done
    scheduler.round(TRIGGERS, Looks("2"))
    (attempt,) = started

    relay.cut()
    now = datetime.now(UTC)
    run = scheduler._running[Lane("gold")]
    run.set_result(Ending(attempt.due, attempt.started, now, Result.SUCCEEDED))
    time.sleep(LEASE.total_seconds() + 0.5)
    with pytest.raises(StoreUnavailable):
        scheduler.round(TRIGGERS, Looks("3"))

    relay.mend()
    for _ in range(3):
        scheduler.round(TRIGGERS, Looks("3"))
    # The end of the first run is recorded; what came meanwhile has a run of its own, once.
    assert [each.number for each in started] == [1, 1]
    state = TriggerRecords(store, "shop").all()[Lane("gold")].state
    assert state.last is not None
    assert (state.last.result, state.last.started) == (Result.SUCCEEDED, attempt.started)
    scheduler.release()
    store.close()
    relay.cut()
