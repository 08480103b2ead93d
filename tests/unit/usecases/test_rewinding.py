"""The frame of an undo and a rebuild: what ends it."""

from __future__ import annotations

import signal
from contextlib import suppress
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from lakewright.errors import LeaseLost, TargetError, UsageError
from lakewright.manifest.journal import Journal
from lakewright.manifest.lease import Holder
from lakewright.testing import MemoryStore
from lakewright.usecases.rewinding import check_of, listed


def test_a_signal_or_a_lost_lease_ends_a_rewind_before_its_next_slice() -> None:
    """Issue 15: Ctrl-C leaves nothing half done; an undo of many slices does not go on after it."""
    lost: list[str] = []

    def check_commit() -> None:
        if lost:
            raise LeaseLost(lost[0])

    app: Any = SimpleNamespace(lake=SimpleNamespace(check_commit=check_commit))
    interruption: Any = SimpleNamespace(signal=None)
    check = check_of(app, interruption)
    check()
    lost.append("another run has it")
    with pytest.raises(LeaseLost):
        check()
    interruption.signal = signal.SIGINT
    with pytest.raises(KeyboardInterrupt):
        check()
    lost.clear()
    check_of(app, None)()


@pytest.mark.parametrize(
    ("is_begun", "error", "facts"),
    [
        (False, UsageError("no slice s9"), {"refused": True}),
        (True, TargetError("s2 does not fit"), {}),
        (False, None, {}),
    ],
)
def test_the_history_says_that_a_rewind_was_refused_before_it_began(
    is_begun: bool, error: Exception | None, facts: dict[str, Any]
) -> None:
    journal = Journal(MemoryStore())
    holder = Holder("here", 1, "then", "r1", "ada")
    app: Any = SimpleNamespace(
        journal=journal,
        run_id="r1",
        project=SimpleNamespace(name="shop"),
        holder=holder,
        trigger=None,
        clock=lambda: datetime(2024, 5, 1, tzinfo=UTC),
    )
    with suppress(UsageError, TargetError), listed(app, "undo orders", "UNDO", {}) as attempt:
        attempt.is_begun = is_begun
        if error is not None:
            raise error
    (run,) = journal.runs()
    assert (run.status, run.facts) == ("FAILED" if error else "SUCCESS", facts)
