"""A machine whose clock is an hour off neither loses a lock nor takes one from its holder.

Durations are counted by the machine, times are the store's: `processing-manifest.md`, "State" (Processing).
A SQLite manifest is used by one machine, which has one clock, so there is nothing to disagree; the Delta one
has no server to ask and says so in its documentation.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.records import REGIONS, found
from tests.stores.workers import attempts_at, ledger_in, shortest_lease

from lakewright.manifest.ledger import Ledger
from lakewright.manifest.record import parse_instant
from lakewright.stores.process import this_process

Settings = dict[str, Any]

HOUR = 3600
OFF = pytest.mark.parametrize(
    ("served", "seconds"),
    [
        pytest.param("postgres", HOUR, id="postgres-fast"),
        pytest.param("dynamodb", -HOUR, id="dynamodb-slow", marks=pytest.mark.nightly),
        pytest.param("postgres", -HOUR, id="postgres-slow", marks=pytest.mark.nightly),
        pytest.param("dynamodb", HOUR, id="dynamodb-fast", marks=pytest.mark.nightly),
    ],
    indirect=["served"],
)


@pytest.fixture
def served(request: pytest.FixtureRequest) -> Settings:
    """Settings of an empty manifest on a server, whose clock is everyone's."""
    settings: Settings = request.getfixturevalue(request.param)
    return settings


@pytest.fixture
def ledger(served: Settings) -> Iterator[Ledger]:
    """The manifest, seen with the right clock."""
    ledger = ledger_in(served)
    with closing(ledger.store):
        ledger.discover([found("a"), found("b")])
        yield ledger


def off_by(seconds: int, work: str, settings: Settings, *arguments: object) -> subprocess.Popen[str]:
    """Start a process with a wrong clock that prints what a worker returns."""
    given = ", ".join([f"json.loads({json.dumps(settings)!r})", *map(repr, arguments)])
    code = (
        f"from tests.stores.skewed import skew; skew({seconds}); import json; "
        f"from tests.stores import workers; print(json.dumps(workers.{work}({given})))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@OFF
def test_a_holder_whose_clock_is_wrong_keeps_its_lock(served: Settings, ledger: Ledger, seconds: int) -> None:
    lease = shortest_lease(served)
    with off_by(seconds, "hold", served, "a", lease) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            time.sleep(1.5 * lease)  # by now its heartbeat has renewed the lease

            assert attempts_at(served, ["a"]) == ["held"]
            lock = ledger.lock(ledger.item(found("a").item_id))
            assert lock is not None
            expires = parse_instant(lock.as_json()["expires"])
            assert abs(expires - datetime.now(UTC)) < timedelta(seconds=3 * lease)

            answer, _ = holder.communicate("go on\n", timeout=60)
            assert answer.split("\n")[:2] == ["may commit", "processed"]
        finally:
            holder.kill()


@OFF
def test_one_whose_clock_is_wrong_takes_no_living_lock_and_none_an_hour_late(
    served: Settings, ledger: Ledger, seconds: int
) -> None:
    for name, lease in (("a", 300), ("b", 1)):
        ledger.acquire(
            found(name).item_id,
            REGIONS,
            this_process("holder"),
            duration=timedelta(seconds=lease),
            token_counter="table",
        )
    time.sleep(1.2 * shortest_lease(served))

    with off_by(seconds, "attempts_at", served, ["a", "b"]) as taker:
        answer, _ = taker.communicate(timeout=60)

    assert json.loads(answer) == ["held", "taken"]
