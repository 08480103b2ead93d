"""Run a job: execute its plan and record it in the history of runs."""

from __future__ import annotations

import logging
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version

from lakewright.app import App
from lakewright.errors import LakewrightError
from lakewright.manifest.settings import kept_since
from lakewright.plan.status import Status
from lakewright.run.execute import Interruption, Listener
from lakewright.run.request import JobRequest
from lakewright.run.result import RunResult
from lakewright.usecases.due.settle import settle
from lakewright.usecases.plan_job import job_run
from lakewright.usecases.session_check import check_session

__all__ = ["run_job"]

log = logging.getLogger(__name__)


def run_job(app: App, request: JobRequest, *, listener: Listener, interruption: Interruption) -> RunResult:
    """Run a job and return the result; the history records the run from its start.

    Runs that are older than the manifest's retention are removed from the history afterwards.

    Raises:
        SpecError: The job, its arguments or a definition are wrong; nothing ran.
        StoreUnavailable: The manifest's back end does not answer; nothing ran.
        SparkUnavailable: The Spark session of this process has no Delta Lake; nothing ran.
    """
    check_session(app)
    since = kept_since(app.project.manifest, app.store.now)
    app.make_store()
    result = job_run(app, request, app.store, interruption).run(
        run_id=app.run_id,
        holder=app.holder,
        listener=listener,
        interruption=interruption,
        facts={
            "versions": {name: _version(name) for name in ("lakewright", "pyspark", "delta-spark")},
            **({"trigger": app.trigger} if app.trigger else {}),
        },
    )
    if any(each.status is not Status.SKIPPED for each in result.targets()):
        settle(app)
    if since is not None:
        _prune(app, since)
    return result


def _prune(app: App, before: datetime) -> None:
    try:
        for run in app.journal.old_runs(before):
            app.journal.delete(run)
    except LakewrightError as error:  # a failure to prune must not fail the run that has just ended
        log.warning("old runs could not be removed from the history: %s", error)


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
