"""What ran, as it is told afterwards."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.cli.surroundings import NOW, FakeApp, call_with, ended

from lakewright.manifest.journal import Run
from lakewright.manifest.lease import Holder


def a_history() -> FakeApp:
    app = FakeApp()
    for number, status in enumerate(("FAILED", "SUCCESS", None)):
        run = app.journal.start_run(
            Run(
                run_id=f"{'abc'[number]}{number}-run",
                project="shop",
                job="daily",
                phase="BUILD",
                parameters={"month:start": "2022-01"},
                started=NOW - timedelta(hours=3 - number),
                holder=Holder("here", 1, "then", "x", "ada"),
            )
        )
        for month in ("2022-01", "2022-02"):
            entry = {**ended(reasons=("empty",)).as_json(), "phase": "BUILD", "instance": {"month": month}}
            app.journal.targets_done(run, {int(month[-1]): entry})
        if status:
            finished = run.started + timedelta(seconds=75)
            app.journal.finish_run(run, status, finished=finished, exit_code=0, versions={"lakewright": "1"})
    return app


def runs(*options: str) -> list[dict[str, Any]]:
    answered = call_with(a_history(), "history", *options, "-o", "json")
    assert answered.code == 0, answered.err
    found: list[dict[str, Any]] = json.loads(answered.out)
    return found


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ((), ["c2-run", "b1-run", "a0-run"]),
        (("--limit", "1"), ["c2-run"]),
        (("--status", "failed"), ["a0-run"]),
        (("--job", "other"), []),
    ],
)
def test_the_newest_run_comes_first(options: tuple[str, ...], found: list[str]) -> None:
    assert [run["run_id"] for run in runs(*options)] == found


def test_the_page_is_a_table() -> None:
    head, *rows = call_with(a_history(), "history").out.splitlines()
    assert head.split() == ["run", "status", "job", "phase", "parameters", "started", "took"]
    assert rows[1].split()[:5] == ["b1-run", "SUCCESS", "daily", "build", "month:start=2022-01"]
    assert rows[1].endswith("2 h 0 min ago  1 min 15 s")


def test_a_run_is_shown_in_the_shape_in_which_it_was_printed() -> None:
    answered = call_with(a_history(), "history", "show", "b1", "-o", "json")
    shown = json.loads(answered.out)
    assert (shown["run_id"], shown["status"], shown["exit_code"]) == ("b1-run", "SUCCESS", 0)
    assert [instance["parameters"] for instance in shown["instances"]] == [
        {"month": "2022-01"},
        {"month": "2022-02"},
    ]
    (phase,) = shown["instances"][0]["phases"]
    assert (phase["phase"], phase["targets"][0]) == ("BUILD", ended(reasons=("empty",)).as_json())


def test_its_page_is_a_tree() -> None:
    page = call_with(a_history(), "history", "show", "b1-run").out
    assert "    SUCCESS regions (relation) 1.2 s: empty" in page.splitlines()


@pytest.mark.parametrize("run", ["zzz", ""])
def test_an_unknown_run_is_wrong_usage(run: str) -> None:
    assert call_with(a_history(), "history", "show", run).code == 2


def test_an_empty_history_says_so() -> None:
    assert call_with(FakeApp(), "history").out == "nothing has run yet\n"


def test_status_names_runs_that_no_later_one_made_good() -> None:
    app = a_history()
    assert "Runs that failed" not in call_with(app, "status").out
    run = app.journal.start_run(
        replace(next(app.journal.runs()), run_id="d3-run", started=NOW, status="RUNNING")
    )
    app.journal.finish_run(run, "FAILED", finished=NOW)
    page = call_with(app, "status", "--project", "lake").out
    assert "FAILED daily build month:start=2022-01, run d3-run, just now" in page
    assert "`lakewright job daily build month:start=2022-01 --resume --project lake`" in page
    found = json.loads(call_with(app, "status", "-o", "json").out)
    assert [run["do"] is not None for run in found["last_runs"]] == [True, False, False, False]
