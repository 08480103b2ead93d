"""The frame of an undo and a rebuild: what ends it."""

from __future__ import annotations

import signal
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lakewright import doctor
from lakewright.app import App
from lakewright.errors import LeaseHeld, LeaseLost, TargetError, UsageError
from lakewright.manifest.journal import Journal
from lakewright.manifest.lease import Holder
from lakewright.testing import MemoryStore
from lakewright.usecases.diagnose import repair_table
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


@pytest.mark.parametrize("error", [None, LeaseHeld("a run writes to the table")])
def test_a_repair_is_listed_with_who_made_it_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    (tmp_path / "project.yml").write_text("name: shop\nentities: {orders: {key: id, strategy: merge}}\n")
    app = App.open(tmp_path, environ={"XDG_STATE_HOME": str(tmp_path / "state")})

    def repair(*_: object) -> int:
        if error is not None:
            raise error
        return 4

    monkeypatch.setattr(doctor, "repair", repair)
    planned: Any = SimpleNamespace(changed=2, removed=1)
    with suppress(LeaseHeld):
        assert repair_table(app, "orders", planned, author="ada", reason="twice") == 4
    (run,) = app.journal.runs()
    facts = {"author": "ada", "reason": "twice", "changed": 2, "removed": 1}
    assert (run.job, run.phase, run.facts) == ("doctor orders", "REPAIR", facts)
    assert run.status == ("FAILED" if error else "SUCCESS")
    app.close()
