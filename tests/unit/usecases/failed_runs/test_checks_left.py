"""A run that failed in its checks comes after what mends the rows that they read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.commands import InProcess
from tests.unit.serve.slices import discover
from tests.unit.usecases.failed_runs.test_work_elsewhere import DAY, failed_run
from tests.unit.usecases.staleness.test_downstream import lake

from lakewright.app import App
from lakewright.manifest.journal import Run, TargetPhase
from lakewright.usecases.failed_runs.checks_left import next_steps
from lakewright.usecases.failed_runs.next_slices import NextSlices
from lakewright.usecases.status import project_status

RESUME = "lakewright job daily build day=2022-01-01 --resume"


def tainted(app: App, *names: str) -> None:
    """Record that targets are to be built again, as an undo does."""
    app.begin_run()
    run = Run(app.run_id, "shop", "undo orders", "UNDO", {}, datetime.now(UTC), app.holder)
    places = (TargetPhase("shop", name, "BUILD", DAY) for name in names)
    app.journal.start_run(run, [place.tainted("orders was undone") for place in places])
    app.journal.finish_run(run, "SUCCESS", finished=datetime.now(UTC))


def test_a_failed_check_comes_after_the_builds_of_what_it_reads(tmp_path: Path) -> None:
    """`--resume` stood first, and failed again: the rows that it checks were still to be removed."""
    app = lake(tmp_path)
    failed_run(app, "whole", phase="VERIFY", error={"message": "a negative amount", "remedy": None})
    (run,) = (found := project_status(app)).undone
    assert not found.step_after(run).comes_last
    tainted(app, "whole")
    step = project_status(app).step_after(run)
    assert (step.comes_last, step.commands) == (True, (RESUME,))
    assert step.caution == "first type what is named for whole"
    page = InProcess(tmp_path).run("status").out
    assert page.index("Targets to build again") < page.index("Runs whose checks failed") < page.index(RESUME)
    app.close()


def test_a_failed_build_stays_before_the_targets_that_read_what_it_builds(tmp_path: Path) -> None:
    app = lake(tmp_path)
    run = failed_run(app, "names")
    tainted(app, "whole")
    assert not project_status(app).step_after(run).comes_last
    app.close()


@pytest.mark.parametrize(("slice_", "comes_last"), [("2022-01-01.csv", True), ("2022-01-02.csv", False)])
def test_a_failed_check_comes_after_the_corrected_slice_of_its_day(
    tmp_path: Path, slice_: str, comes_last: bool
) -> None:
    app = lake(tmp_path)
    model = tmp_path / "model/model.yml"
    own, taking = "{kind: entity, entity: orders}", '{kind: entity, entity: orders, slices: "${day}*"}'
    relations, targets = model.read_text().split("targets:\n", 1)
    model.write_text(f"{relations}targets:\n{targets.replace(own, taking)}")
    app = App.open(tmp_path)
    run = failed_run(app, "whole", phase="VERIFY", error={"message": "a negative amount", "remedy": None})
    (item,) = discover(app, "orders", [slice_])
    corrected: Any = SimpleNamespace(entity="orders", names=(slice_,), items=(item,))
    steps = next_steps(app, [run], NextSlices(app), (), [corrected])
    step = steps[run.run_id]
    assert step.comes_last is comes_last
    assert step.caution == (f"first type what is named for {slice_} of orders" if comes_last else None)
    app.close()
