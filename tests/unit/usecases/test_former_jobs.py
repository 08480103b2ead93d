"""Failed runs of jobs that the project does not declare any more: nobody can resume them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.commands import InProcess
from tests.unit.usecases.staleness.test_downstream import lake

from lakewright.app import App
from lakewright.errors import Fault
from lakewright.manifest.journal import Run, TargetPhase
from lakewright.manifest.store import Write
from lakewright.usecases.failed_runs.undone_runs import is_of_former_job
from lakewright.usecases.status import project_status


def failed(app: App, job: str, run_id: str) -> Run:
    """Record a run that has left the target `names` undone."""
    day = {"day": "2022-01-01"}
    run = app.journal.start_run(Run(run_id, "shop", job, "BUILD", day, app.store.now(), app.holder))
    entry = {"name": "names", "phase": "BUILD", "status": "FAILED", "instance": day, "reasons": []}
    app.journal.record_targets(run, {0: entry})
    app.store.write(Write(puts=(TargetPhase("shop", "names", "BUILD", day).tainted("failed", run_id),)))
    return app.journal.finish_run(run, "FAILED", finished=app.store.now())


def test_what_they_left_undone_is_told_with_the_targets_and_the_jobs_that_build_these_now(
    tmp_path: Path,
) -> None:
    app = lake(tmp_path)
    app.begin_run()
    run = failed(app, "monthly", "old")
    status = project_status(app)
    assert status.undone == ()
    (found,) = status.tainted
    assert (found.target, found.reason) == ("names", "failed in run old")
    assert found.commands == ("lakewright job daily build -t names day=2022-01-01",)
    page = InProcess(tmp_path).run("status").out
    assert ("--resume" in page, "monthly" in page) == (False, True)  # it is among the last runs

    failed(app, "daily", "new")
    assert [each.run_id for each in project_status(app).undone] == ["new"]
    assert not is_of_former_job(app.project, replace(run, phase="UNDO", job="undo orders"))
    assert not is_of_former_job(app.project, replace(run, project="other"))
    # The file that declares it can't be read.
    assert not is_of_former_job(replace(app.project, faults=(Fault("not YAML"),)), run)
    app.close()
