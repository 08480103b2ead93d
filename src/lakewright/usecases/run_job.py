"""Run a job: execute its plan and record it in the history of runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version

from lakewright.app import App
from lakewright.errors import LakewrightError
from lakewright.manifest.settings import kept_since
from lakewright.manifest.store import Put, Write
from lakewright.run.execute import Interruption, Listener
from lakewright.run.request import JobRequest
from lakewright.run.result import RunResult
from lakewright.slices.other_runs import entity_name
from lakewright.spec.models.entity import Entity
from lakewright.usecases.failed_runs.retry import retried
from lakewright.usecases.plan_job import job_run
from lakewright.usecases.session_check import check_session
from lakewright.usecases.staleness.brought_back import brought_back
from lakewright.usecases.staleness.downstream import forget_overwritten, taint_after_processing
from lakewright.usecases.staleness.earlier_builds import former_names
from lakewright.usecases.staleness.emptied import forget_emptied
from lakewright.usecases.staleness.stale_inputs import keep_dirty, taint_left_out

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
    _rename_taints(app)
    _forget_brought_back(app)
    taints = tuple(app.journal.taints(app.project.name))
    result = job_run(app, retried(app, request), app.store, interruption).run(
        run_id=app.run_id,
        holder=app.holder,
        listener=listener,
        interruption=interruption,
        facts={
            "versions": {name: _version(name) for name in ("lakewright", "pyspark", "delta-spark")},
            **({"trigger": app.trigger} if app.trigger else {}),
        },
    )
    forget_overwritten(app, taints, result)
    forget_emptied(app, taints, result)
    keep_dirty(app, taints, result)
    taint_left_out(app, result)
    for entity, items in _processed(app, result):
        untainted = taint_after_processing(app, entity, items, result.run_id)
        if untainted is not None:  # the run has ended and is recorded
            log.warning("%s", untainted.as_fault())
    if since is not None:
        _prune(app, since)
    return result


def _rename_taints(app: App) -> None:
    """Give taints of targets that were renamed their present names, by which the run looks for them."""
    names = former_names(app)
    puts: list[Put] = []
    for taint in app.journal.taints(app.project.name):
        if (name := names.of_taint(taint)) is not None:
            puts += taint.renamed(name)
    if puts:
        app.store.write(Write(puts=tuple(puts)))


def _forget_brought_back(app: App) -> None:
    """Remove the taints of rows that somebody has brought back, before they tell a wrong reason."""
    if puts := tuple(each.place.untainted() for each in brought_back(app)):
        app.store.write(Write(puts=puts))


def _processed(app: App, result: RunResult) -> Iterator[tuple[Entity, list[str]]]:
    """Yield the entities whose tables a run has changed, with the items that made a commit."""
    found: dict[str, list[str]] = {}
    for each in result.targets():
        definition = app.project.targets.get(each.name)
        slices = each.metrics.get("slices") if definition is not None and each.kind == "entity" else None
        if slices and definition is not None and (name := entity_name(app.project, definition.raw)):
            items = [one["item"] for one in slices if one["delta_version"] is not None]
            found.setdefault(name, []).extend(items)
    return ((app.project.entity(name), items) for name, items in found.items())


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
