"""A failed run is not listed any more once others have done all that it left undone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.serve.slices import discover, fail, process
from tests.unit.usecases import left
from tests.unit.usecases.staleness.test_downstream import built, lake

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.manifest.journal import Run
from lakewright.usecases.failed_runs.undone_runs import is_left, is_superseded
from lakewright.usecases.failed_runs.work_elsewhere import slices_to_place
from lakewright.usecases.history import accept_runs, alike_left, find_run, run_as_json

DAY = {"day": "2022-01-01"}


def failed_run(
    app: App,
    name: str,
    run_id: str = "failed",
    day: str = DAY["day"],
    hours_ago: float = 1,
    **entry: Any,
) -> Run:
    """Record a run of the job `daily` in which a target failed."""
    at = datetime.now(UTC) - timedelta(hours=hours_ago)
    given = {"day": day}
    run = app.journal.start_run(Run(run_id, "shop", "daily", "BUILD", given, at, app.holder))
    result = {"name": name, "phase": "BUILD", "status": "FAILED", "reasons": [], "instance": given, **entry}
    app.journal.record_targets(run, {0: {"error": None, **result}})
    return app.journal.finish_run(run, "FAILED", finished=at)


def listed(app: App) -> list[str]:
    return [run.run_id for run in left.undone(app)]


@pytest.mark.parametrize("is_recorded", [True, False], ids=["slice", "storage"])
def test_a_run_is_done_once_its_slices_are_processed_by_hand(tmp_path: Path, is_recorded: bool) -> None:
    """After `process`, `status` named `--resume` of a run of which nothing was left."""
    app = lake(tmp_path)
    (new, other) = discover(app, "orders", ["1.csv", "2.csv"])
    if is_recorded:
        item = fail(app, new)
        run = failed_run(app, "orders", failed_items=[item.item_id])
        assert listed(app) == ["failed"]
        new = app.ledger.resolve(item.item_id, "mended")
    else:
        run = failed_run(app, "orders")
    process(app, new)
    assert (listed(app), is_superseded(app, run)) == (["failed"], False)  # a slice waits
    process(app, other)
    assert (listed(app), is_superseded(app, run)) == ([], True)
    app.close()


def test_a_step_is_done_by_another_job_that_builds_the_target_in_the_same_instance(tmp_path: Path) -> None:
    app = lake(tmp_path)
    app.close()
    model = tmp_path / "model/model.yml"
    other = "  other:\n    parameters: [{name: day, type: date}]\n    targets: [names]\n"
    model.write_text(model.read_text() + other)
    app = App.open(tmp_path)
    failed_run(app, "names")
    built(app, "other", ["names"], day="2022-01-02")
    assert listed(app) == ["failed"]
    built(app, "other", ["names"], day="2022-01-01")
    assert listed(app) == []
    app.close()


def test_a_failed_run_is_not_told_once_a_person_has_accepted_it(tmp_path: Path) -> None:
    """A day whose only slice was skipped failed in VERIFY, and was told for ever."""
    app = lake(tmp_path)
    run = failed_run(app, "names")
    assert listed(app) == ["failed"]
    other = built(app, "daily", ["names"], day="2022-01-02")
    with pytest.raises(UsageError, match="ended with SUCCESS: only the failure of a run is accepted"):
        accept_runs(app, ["failed", other.run_id], author="ann", reason="")
    assert listed(app) == ["failed"], "none was accepted"
    accept_runs(app, ["fail"], author="ann", reason="no orders that day")
    assert (listed(app), is_superseded(app, run)) == ([], False), "the run as it was read before"
    run = find_run(app, "failed")
    assert (is_superseded(app, run), is_left(app, run)) == (True, True)
    assert run_as_json(run)["accepted"].items() >= {"by": "ann", "reason": "no orders that day"}.items()
    failed_run(app, "names", run_id="again")
    assert listed(app) == ["again"]
    app.close()


def test_accepting_an_older_failure_names_the_newer_one_that_is_still_told(tmp_path: Path) -> None:
    app = lake(tmp_path)
    failed_run(app, "names", run_id="older")
    failed_run(app, "names", run_id="newer", hours_ago=0.5)
    failed_run(app, "names", run_id="elsewhen", day="2022-01-02")
    accepted = accept_runs(app, ["older"], author="ann", reason="")
    assert [run.run_id for run in alike_left(app, accepted)] == ["newer"]
    assert alike_left(app, accept_runs(app, ["newer"], author="ann", reason="")) == []
    assert listed(app) == ["elsewhen"]
    app.close()


def test_failed_runs_stand_in_the_order_of_their_days(tmp_path: Path) -> None:
    """The newest day stood first; typed from top to bottom, it made the slices of the older ones late."""
    app = lake(tmp_path)
    for run_id, day in (("1", "2022-01-03"), ("2", "2022-01-10"), ("3", "2022-01-02")):
        failed_run(app, "names", run_id=run_id, day=day)
    assert listed(app) == ["3", "1", "2"]
    app.close()


def test_a_rebuild_is_not_left_to_do_once_its_table_was_emptied(tmp_path: Path) -> None:
    """It was listed for ever after TRUNCATE, by which the next run processes all slices again."""
    app = lake(tmp_path)
    at = datetime.now(UTC) - timedelta(hours=1)
    run = Run("failed", "shop", "rebuild orders", "REBUILD", {}, at, app.holder)
    run = app.journal.finish_run(app.journal.start_run(run), "FAILED", finished=at)
    for name, target, status in (("1", "names", "SUCCESS"), ("2", "orders", "FAILED")):
        emptied(app, name, target, status)
        assert (listed(app)[0], is_superseded(app, run)) == ("failed", False)
    emptied(app, "3", "orders", "SUCCESS")
    assert (listed(app), is_superseded(app, run)) == ([], True)
    app.close()


def emptied(app: App, name: str, target: str, status: str) -> None:
    """Record a run of the job `daily` that has emptied a target."""
    at = datetime.now(UTC)
    run = app.journal.start_run(Run(name, "shop", "daily", "TRUNCATE", DAY, at, app.holder))
    result = {"name": target, "phase": "TRUNCATE", "status": status, "reasons": [], "instance": DAY}
    app.journal.record_targets(run, {0: {"error": None, **result}})
    app.journal.finish_run(run, status, finished=at)


def test_a_rebuild_has_placed_its_slices_once_none_of_them_waits_whatever_their_names(tmp_path: Path) -> None:
    app = lake(tmp_path)
    (item,) = discover(app, "orders", ["a b ü.csv"])
    at, facts = datetime.now(UTC) - timedelta(hours=1), {"include": ["a b ü.csv"]}
    run = Run("killed", "shop", "rebuild orders", "REBUILD", {}, at, app.holder, facts=facts)
    run = app.journal.finish_run(app.journal.start_run(run), "FAILED", finished=at)
    assert slices_to_place(app, run) == frozenset({item.item_id})
    assert (listed(app), is_superseded(app, run)) == (["killed"], False)
    process(app, item)
    assert (listed(app), is_superseded(app, run)) == ([], True)
    app.close()
