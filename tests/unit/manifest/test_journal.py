"""History of runs: `lifecycles-and-phases.md`, "Jobs & Lifecycles"."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.records import START, Clock, holder

from lakewright.errors import StoreUnavailable
from lakewright.manifest.journal import (
    ABORTED,
    RUNNING,
    Journal,
    Run,
)
from lakewright.manifest.redaction import Redactor
from lakewright.manifest.store import Write, Written
from lakewright.testing import MemoryStore


class Counting(MemoryStore):
    writes = 0

    def write(self, write: Write) -> Written:
        self.writes += 1
        return super().write(write)


def run(number: int, **changes: Any) -> Run:
    given: dict[str, Any] = {
        "run_id": f"run-{number}",
        "project": "demo",
        "job": "daily",
        "phase": "BUILD",
        "parameters": {"day": f"2022-01-0{number}"},
        "started": START + timedelta(minutes=number),
        "holder": holder(f"run-{number}", pid=number),
        **changes,
    }
    return Run(**given)


def test_a_run_is_two_writes_and_one_for_each_target() -> None:
    store = Counting(Clock())
    journal = Journal(store)
    begun = journal.start_run(run(1))
    for number, name in enumerate(["regions", "countries"]):
        journal.record_targets(begun, {number: {"name": name, "status": "SUCCESS"}})
    journal.finish_run(begun, "SUCCESS", finished=START + timedelta(hours=1), exit_code=0)
    assert store.writes == 4
    kept = journal.run("run-1")
    assert kept == run(1, status="SUCCESS", finished=START + timedelta(hours=1), facts={"exit_code": 0})
    assert [target["name"] for target in journal.targets("run-1")] == ["regions", "countries"]


def test_targets_are_shown_in_the_order_of_their_numbers() -> None:
    journal = Journal(MemoryStore())
    begun = journal.start_run(run(1))
    for number in (10, 2, 1):
        journal.record_targets(begun, {number: {"number": number}})
    journal.record_targets(journal.start_run(run(11, run_id="run-11")), {0: {"number": 99}})
    assert [target["number"] for target in journal.targets("run-1")] == [1, 2, 10]


def test_runs_come_newest_first_and_filtered() -> None:
    journal = Journal(MemoryStore())
    for number in (2, 1, 3):
        journal.start_run(run(number, job="daily" if number < 3 else "weekly"))
    assert [each.run_id for each in journal.runs()] == ["run-3", "run-2", "run-1"]
    assert [each.run_id for each in journal.runs(1, job="daily")] == ["run-2"]
    assert [each.run_id for each in journal.runs(project="other")] == []
    assert [each.run_id for each in journal.runs(status=RUNNING, job="weekly")] == ["run-3"]
    assert journal.run("run-9") is None


def test_a_run_whose_process_has_ended_is_aborted() -> None:
    journal = Journal(MemoryStore(), is_dead=lambda who: who.pid == 1)
    journal.start_run(run(1))
    journal.start_run(run(2))
    assert {each.run_id: each.status for each in journal.runs()} == {"run-1": ABORTED, "run-2": RUNNING}
    journal.finish_run(run(1), "SUCCESS", finished=START)
    ended = journal.run("run-1")
    assert ended is not None
    assert ended.status == "SUCCESS"


def test_an_end_that_could_not_be_saved_is_saved_with_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(MemoryStore())
    begun = journal.start_run(run(1))

    def away(_: Write) -> Written:
        raise StoreUnavailable("the manifest does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(journal.store, "write", away)
        with pytest.raises(StoreUnavailable):
            journal.finish_run(begun, "SUCCESS", finished=START)
        found = journal.run("run-1")
        assert found is not None
        assert found.status == "SUCCESS"
    journal.start_run(run(2))
    (_, saved) = Journal(journal.store).runs()
    assert (saved.status, saved.finished) == ("SUCCESS", START)


def test_secrets_are_hidden_and_size_is_bounded() -> None:
    journal = Journal(MemoryStore(), Redactor(frozenset({"hunter22"})))
    begun = journal.start_run(
        run(1, parameters={"db_password": "x", "day": "1"}, facts={"url": "s3://a:b@c"})
    )
    assert begun.parameters == {"db_password": "***", "day": "1"}
    journal.record_targets(begun, {0: {"error": {"message": "hunter22 " + "x" * 100_000}}})
    journal.finish_run(begun, "FAILED", finished=START, note="hunter22")
    kept = str([journal.run("run-1"), *journal.targets("run-1")])
    assert "hunter22" not in kept
    assert "a:b@" not in kept
    assert len(kept) < 5_000
