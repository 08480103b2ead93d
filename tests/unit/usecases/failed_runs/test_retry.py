"""What a scheduler's next try runs, after the failed run before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from tests.unit.serve.slices import discover
from tests.unit.usecases.staleness.test_downstream import PROJECT

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.manifest.journal import KeptRows, Run, TargetPhase
from lakewright.manifest.store import Write
from lakewright.plan.phase import Phase
from lakewright.run.request import JobRequest
from lakewright.usecases.failed_runs.next_slices import slices_left_out
from lakewright.usecases.failed_runs.retry import retried
from lakewright.usecases.history import accept_runs

MODEL = """
connections:
  shop: {settings: {bronze_path: "bronze/${entity}", silver_path: "silver/${entity}"}}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
relations:
  log: {kind: delta, location: gold/log}
  values: {kind: values, records: [{id: 1}], columns: {id: long}}
mappings:
  values: {kind: relation, relation: values}
targets:
  orders: {kind: entity, entity: orders, slices: "${day}*"}
  log: {kind: relation, mapping: values, relation: log, mode: APPEND}
  audit: {kind: relation, mapping: values, relation: {kind: delta, location: gold/audit}}
jobs:
  daily: {parameters: [{name: day, type: date}], targets: [orders, log, audit]}
"""
DAY = "2024-05-01"
ASKED = JobRequest("daily", Phase.BUILD, (f"day={DAY}",), retry=True)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    (tmp_path / "model").mkdir()
    (tmp_path / "project.yml").write_text(PROJECT)
    (tmp_path / "model/model.yml").write_text(MODEL)
    app = App.open(tmp_path)
    app.make_store()
    yield app
    app.close()


def ran(
    app: App,
    *,
    fails: str | None = None,
    day: str | None = DAY,
    done: Sequence[str] = ("orders", "log"),
    **facts: Any,
) -> None:
    """Record a run in which a target failed, if so, after the others had succeeded."""
    app.begin_run()
    at, parameters = app.clock(), {} if day is None else {"day": day}
    run = app.journal.start_run(
        Run(app.run_id, "shop", "daily", "BUILD", parameters, at, app.holder, facts=facts)
    )
    entries: list[dict[str, Any]] = [
        {
            "name": name,
            "phase": "BUILD",
            "status": "FAILED" if name == fails else "SUCCESS",
            "instance": parameters,
            "reasons": [],
            "error": None,
        }
        for name in (*done, "audit")
    ]
    app.journal.record_targets(run, dict(enumerate(entries)))
    app.journal.finish_run(run, "FAILED" if fails else "SUCCESS", finished=app.clock())


def test_a_retry_resumes_the_run_that_failed(app: App) -> None:
    ran(app, fails="audit")
    asked = retried(app, ASKED)
    assert (asked.resume, asked.retry, asked.targets) == (True, False, ())


@pytest.mark.parametrize("asked", [ASKED, JobRequest("daily", Phase.VERIFY, (f"day={DAY}",), retry=True)])
def test_a_retry_runs_all_if_no_such_run_has_failed(app: App, asked: JobRequest) -> None:
    """As nothing was recorded of a first try that was refused, or an operator has done its work since."""
    records: list[dict[str, Any]] = [
        {},
        {"fails": "audit", "day": "2024-05-02"},
        {"fails": "audit", "targets": ["audit"]},
        {"fails": "audit", "no_lifecycle": True},
    ]
    for count in range(len(records) + 1):
        if count:
            ran(app, **records[count - 1])
        found = retried(app, asked)
        assert (found.resume, found.retry, found.targets) == (False, False, ())
    ran(app, fails="audit")
    ran(app)
    assert not retried(app, asked).resume


def test_a_retry_takes_the_corrected_slice_and_adds_no_rows_twice(app: App, tmp_path: Path) -> None:
    """A run that is only resumed would leave the correction out, and fail again."""
    ran(app, fails="audit")
    write_deltalake(tmp_path / "gold/log", import_module("pyarrow").table({"id": [1]}))
    discover(app, "orders", [f"{DAY}.csv"])
    found = retried(app, ASKED)
    assert (found.resume, found.targets) == (False, ("orders", "audit"))


def test_a_third_try_takes_a_slice_that_arrived_after_the_second_one(app: App, tmp_path: Path) -> None:
    """The second try had only resumed the first, so that what this had processed counted as nobody's."""
    ran(app, fails="audit")
    ran(app, fails="audit", done=(), resume=True)
    write_deltalake(tmp_path / "gold/log", import_module("pyarrow").table({"id": [1]}))
    assert retried(app, ASKED).resume
    discover(app, "orders", [f"{DAY}.csv"])
    found = retried(app, ASKED)
    assert (found.resume, found.targets) == (False, ("orders", "audit"))
    last = next(app.journal.runs())
    assert slices_left_out(app, last)


def test_a_retry_builds_what_is_to_be_built_again_and_tells_what_it_leaves(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    """After the rebuild that corrected a slice, only the failed check was run again, and all was green."""
    ran(app, fails="audit")
    reason = "the table of orders was built again"
    left = TargetPhase("shop", "audit", "BUILD", {"day": DAY}).tainted("failed", app.run_id)
    other = TargetPhase("shop", "log", "BUILD", {"day": "2024-05-02"}).tainted(reason)
    app.store.write(Write(puts=(left, other)))
    assert retried(app, ASKED).resume, "its own work, and another day, are left"

    stale = [
        TargetPhase("shop", "orders", "BUILD", {"day": DAY}).tainted(reason),
        TargetPhase("shop", "log", "BUILD", {"day": DAY}).tainted(
            reason, kept=KeptRows(f"{reason}, and adds")
        ),
    ]
    app.store.write(Write(puts=tuple(stale)))
    found = retried(app, ASKED)
    assert (found.resume, found.targets) == (False, ("orders", "audit"))
    assert "log: not built by this run, and to be built again by their job" in caplog.text


def test_a_retry_without_parameters_adds_no_rows_twice_either(app: App, tmp_path: Path) -> None:
    """A slice arrived between two tries. Without parameters, each run of a job adds rows."""
    model = tmp_path / "model/model.yml"
    model.write_text(
        MODEL.replace("parameters: [{name: day, type: date}], ", "").replace(', slices: "${day}*"', "")
    )
    with closing(App.open(tmp_path)) as other:
        ran(other, fails="audit", day=None)
        ran(other, fails="audit", day=None, resume=True, done=("orders",))
        discover(other, "orders", [f"{DAY}.csv"])
        found = retried(other, JobRequest("daily", Phase.BUILD, (), retry=True))
    assert (found.resume, found.targets) == (False, ("orders", "audit"))


def test_a_retry_of_targets_by_name_leaves_out_what_was_added(app: App, tmp_path: Path) -> None:
    chosen = ("orders", "log", "audit")
    ran(app, fails="audit", targets=list(chosen))
    discover(app, "orders", [f"{DAY}.csv"])
    asked = JobRequest("daily", Phase.BUILD, (f"day={DAY}",), targets=chosen, retry=True)
    assert retried(app, asked).targets == ("orders", "audit")


def test_a_retry_resumes_a_run_whose_failure_was_accepted(app: App) -> None:
    """Nobody has done its work."""
    ran(app, fails="audit")
    accept_runs(app, [app.run_id], author="ann", reason="known")
    assert retried(app, ASKED).resume


def test_a_retry_of_chosen_targets_is_of_the_same(app: App) -> None:
    ran(app, fails="audit", targets=["audit"])
    asked = JobRequest("daily", Phase.BUILD, (f"day={DAY}",), targets=("audit",), retry=True)
    found = retried(app, asked)
    assert (found.resume, found.targets) == (True, ("audit",))


def test_a_run_is_not_both_resumed_and_retried(app: App) -> None:
    with pytest.raises(UsageError, match="either resumed or retried"):
        retried(app, JobRequest("daily", Phase.BUILD, (), resume=True, retry=True))
