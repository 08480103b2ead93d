"""A gold table that was removed by hand is not made anew in silence: the rows of other instances are lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.usecases.staleness.test_downstream import built, lake

from lakewright.app import App
from lakewright.errors import Fault
from lakewright.manifest.journal import Run
from lakewright.plan.observation import Answer, Observation, TableChange
from lakewright.plan.permissions import Permissions
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.plan.step import Step
from lakewright.relations.file import FileRelation
from lakewright.run.build_history import BuildHistory
from lakewright.run.builds import BuildRecorder
from lakewright.run.job import Recorder
from lakewright.run.lost_rows import lost_taints
from lakewright.run.missing_inputs import MISSING_INPUT
from lakewright.run.request import JobRequest
from lakewright.run.result import TargetResult
from lakewright.usecases.plan_job import plan_job

DAYS = ("2022-01-01", "2022-01-02", "2022-01-03")


def creation(app: App, target: str, day: str = DAYS[-1], job: str = "daily") -> Step:
    """Return the step that creates a target's table in a run of a day."""
    arguments = (f"day={day}",) if job == "daily" else ()
    request = JobRequest(job, Phase.BUILD, arguments, permissions=Permissions(allow_data_loss=True))
    steps = plan_job(app, request).steps()
    return next(each for each in steps if each.phase is Phase.CREATE and each.target == target)


def emptied(app: App, phase: str, target: str, day: str, status: str = "SUCCESS") -> None:
    """Record a run that emptied or removed what a target writes."""
    app.begin_run()
    now = app.store.now()
    run = app.journal.start_run(Run(app.run_id, "shop", "daily", phase, {"day": day}, now, app.holder))
    entry: dict[str, Any] = {"name": target, "phase": phase, "instance": {"day": day}, "status": status}
    app.journal.record_targets(run, {0: {**entry, "reasons": ["is empty"]}})
    app.journal.finish_run(run, status, finished=now)


def warning(app: App, target: str, day: str = DAYS[-1]) -> Fault | None:
    return creation(app, target, day).warning


def test_a_table_that_is_made_anew_is_told_with_what_was_built_into_it(tmp_path: Path) -> None:
    app = lake(tmp_path)
    assert warning(app, "names") is None  # the first run
    for number, day in enumerate(DAYS):
        built(app, "daily", ("orders", "names", "whole"), hours_ago=9 - number, day=day)
    step = creation(app, "names")
    assert step.warning is not None
    place = str(tmp_path / "gold/names")
    assert step.warning.message == (
        f"target 'names': {place} does not exist any more, and 2 other instances were built into it: "
        "day=2022-01-01, day=2022-01-02"
    )
    assert "`lakewright job daily build -t names day=2022-01-01,2022-01-02`" in str(step.warning.remedy)
    assert warning(app, "whole") is None  # each instance replaces the whole table

    puts = lost_taints("shop", "r1", step)
    places = [put.value["place"] for put in puts if put.value]
    assert sorted((each["target"], each["parameters"]["day"]) for each in places) == [
        ("names", "2022-01-01"),
        ("names", "2022-01-02"),
    ]
    assert {put.value["reason"] for put in puts if put.value} == {
        f"{place} did not exist any more, and was made anew in run r1"
    }
    app.close()


def test_a_table_counts_as_made_anew_once_it_is_there(tmp_path: Path) -> None:
    """CREATE of a table without declared columns makes nothing, and BUILD may fail then."""
    app = lake(tmp_path)
    for number, day in enumerate(DAYS):
        built(app, "daily", ("orders", "names"), hours_ago=9 - number, day=day)
    plan = plan_job(app, JobRequest("daily", Phase.BUILD, (f"day={DAYS[-1]}",), targets=("names",)))
    steps = {step.phase: step for step in plan.steps() if step.target == "names"}
    app.begin_run()
    run = Run(app.run_id, "shop", "daily", "BUILD", {"day": DAYS[-1]}, app.store.now(), app.holder)
    run = app.journal.start_run(run)
    recorder = Recorder(app.journal, run, plan, (), BuildRecorder(app.journal, run, plan, app.lake))
    done = TargetResult("names", "relation", Phase.CREATE, Status.SUCCESS)
    recorder.step_finished(0, steps[Phase.CREATE], done)
    assert list(app.journal.taints("shop")) == []
    (tmp_path / f"gold/names/day={DAYS[-1]}").mkdir(parents=True)
    recorder.step_finished(0, steps[Phase.BUILD], replace(done, phase=Phase.BUILD))
    tainted = [each.place.parameters["day"] for each in app.journal.taints("shop")]
    assert sorted(tainted) == [DAYS[0], DAYS[1]]
    app.close()


def test_what_adds_to_a_table_is_lost_in_every_instance(tmp_path: Path) -> None:
    app = lake(tmp_path)
    built(app, "daily", ("added",), hours_ago=2, day=DAYS[0])
    assert warning(app, "added", DAYS[0]) is None
    found = warning(app, "added")
    assert found is not None
    assert "1 other instance was built into it: day=2022-01-01" in found.message
    app.close()


def test_a_migration_that_replaces_a_table_is_told_with_what_was_built_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = lake(tmp_path)
    for number, day in enumerate(DAYS):
        built(app, "daily", ("names",), hours_ago=9 - number, day=day)
    seen: dict[str, str | None] = {"loses": "all its rows"}

    def observe(*_: object) -> Observation:
        change = TableChange("replace the table with an empty one", seen["loses"], empties=True)
        return Observation("file:names", Answer.YES, Answer.YES, changes=(change,))

    monkeypatch.setattr(FileRelation, "observe", observe)
    step = creation(app, "names")
    assert step.warning is not None
    place = str(tmp_path / "gold/names")
    assert step.warning.message == (
        f"target 'names': CREATE replaces {place} with an empty table, and 2 other instances were built into "
        "it: day=2022-01-01, day=2022-01-02"
    )
    assert step.warning.remedy == (
        "Build these again afterwards: `lakewright job daily build -t names day=2022-01-01,2022-01-02`."
    )
    puts = [put.value for put in lost_taints("shop", "r1", step) if put.value]
    assert {each["reason"] for each in puts} == {f"{place} was replaced with an empty table in run r1"}
    assert len(puts) == 2
    seen["loses"] = None  # it has no rows
    assert warning(app, "names") is None
    app.close()


@pytest.mark.parametrize(
    ("phase", "status", "left"),
    [
        ("DESTROY", "SUCCESS", []),
        ("TRUNCATE", "SUCCESS", ["2022-01-02"]),
        ("TRUNCATE", "SKIPPED", ["2022-01-02"]),
        ("TRUNCATE", "FAILED", ["2022-01-01", "2022-01-02"]),
    ],
)
def test_what_a_run_has_emptied_is_not_lost(tmp_path: Path, phase: str, status: str, left: list[str]) -> None:
    app = lake(tmp_path)
    for day in DAYS:
        built(app, "daily", ("names",), hours_ago=2, day=day)
    emptied(app, phase, "names", DAYS[0], status)
    found = creation(app, "names").lost
    told = [] if found is None else [each.parameters["day"] for each in found.builds]
    assert sorted(told) == left
    app.close()


def test_the_history_is_not_searched_for_a_table_that_the_last_runs_do_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = lake(tmp_path)
    for day in DAYS:
        built(app, "daily", ("names",), day=day)
    monkeypatch.setattr(BuildHistory, "built_into", lambda *_: pytest.fail("it was searched"))
    request = JobRequest("daily", Phase.BUILD, ("day=2022-01-01",), targets=("whole",))
    warnings = (each.warning for each in plan_job(app, request).steps())
    assert {each.code for each in warnings if each is not None} == {MISSING_INPUT}
    app.close()
