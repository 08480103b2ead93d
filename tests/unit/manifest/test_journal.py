"""History of runs, and taints: `lifecycles-and-phases.md`, "Jobs & Lifecycles"."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.records import START, Clock, holder

from lakewright.errors import StoreUnavailable
from lakewright.manifest.journal import (
    ABORTED,
    RUNNING,
    TAINT,
    Journal,
    KeptRows,
    Origin,
    Run,
    Taint,
    TargetPhase,
)
from lakewright.manifest.redact import Redactor
from lakewright.manifest.store import Put, Write, Written
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
    assert [each.run_id for each in journal.runs(parameters={"day": "2022-01-01"})] == ["run-1"]
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


def test_parameters_with_secrets_are_still_found() -> None:
    journal = Journal(MemoryStore())
    journal.start_run(run(1, parameters={"token": "x"}))
    assert [each.run_id for each in journal.runs(parameters={"token": "x"})] == ["run-1"]


PLACE = TargetPhase("demo", "regions", "BUILD", {"day": "2022-01-01", "zone": "a"})


def test_a_taint_has_its_run_as_a_field_and_that_of_an_earlier_version_tells_it_in_its_reason() -> None:
    """A reason may end like that of a run: an operator's words are part of what an undo says."""
    journal = Journal(MemoryStore())
    told = PLACE.tainted("was left undone", "r1")
    assert told.value is not None
    assert told.value["reason"] == "was left undone in run r1"
    old = {name: value for name, value in told.value.items() if name != "run_id"}
    by_hand = PLACE.tainted("it went back: the day was wrong in run 7")
    for put, run_id in ((told, "r1"), (Put(TAINT, PLACE.key, old), "r1"), (by_hand, None)):
        journal.store.write(Write(puts=(put,)))
        assert [taint.run_id for taint in journal.taints("demo")] == [run_id]


def test_a_taint_has_what_is_known_of_kept_rows_as_codes_and_earlier_versions_told_it_in_words() -> None:
    kept = KeptRows("a build adds its rows")
    for written in (kept, replace(kept, origin=Origin.TWICE), replace(kept, origin=Origin.UNSURE)):
        put = PLACE.tainted("it went back", kept=written, is_built=True)
        assert put.value is not None
        found = Taint.from_json(put.value)
        assert (found.kept, found.is_built, found.put) == (written, True, put)
    plain = PLACE.tainted("was built with rows of before").value
    assert plain is not None
    assert not Taint.from_json(plain).is_built

    def earlier(reason: str, why: str) -> Taint:
        return Taint.from_json({"place": plain["place"], "reason": reason, "run_id": None, "kept": why})

    twice = "its rows came more than once: run 1 had added them"
    assert earlier("was built with rows of before", twice) == Taint(
        PLACE, "was built with rows of before", kept=KeptRows(twice, Origin.TWICE), is_built=True
    )
    unsure = "run 1 may have added its rows already, and a build adds its rows"
    assert earlier("failed", unsure) == Taint(PLACE, "failed", kept=KeptRows(unsure, Origin.UNSURE))
    assert earlier("failed", "adds") == Taint(PLACE, "failed", kept=KeptRows("adds"))


def test_a_taint_stays_until_it_is_removed() -> None:
    store = Counting(Clock())
    journal = Journal(store)
    begun = journal.start_run(run(1))
    before = store.writes
    journal.record_targets(begun, {0: {}}, [PLACE.tainted("it failed")])
    assert store.writes == before + 1
    assert [(taint.place, taint.reason) for taint in journal.taints("demo")] == [(PLACE, "it failed")]
    assert list(journal.taints("dem")) == []
    again = TargetPhase("demo", "regions", "BUILD", {"zone": "a", "day": "2022-01-01"})
    journal.record_targets(begun, {1: {}}, [again.untainted()])
    assert list(journal.taints("demo")) == []
