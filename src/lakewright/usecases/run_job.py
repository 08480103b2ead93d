"""Plan a job: show what a run would do, and why; or run it: execute the plan and record it in the history."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from lakewright.app import App
from lakewright.errors import LakewrightError, SpecError
from lakewright.manifest.settings import kept_since
from lakewright.manifest.store import Store
from lakewright.plan.graph import Node
from lakewright.plan.selectors import Selectable, select
from lakewright.plan.status import Status
from lakewright.plan.step import Plan
from lakewright.run.execute import Interruption, Listener
from lakewright.run.job import JobRun
from lakewright.run.request import JobRequest
from lakewright.run.result import RunResult
from lakewright.spec.arguments import expand_arguments
from lakewright.spec.expressions.values import render_value
from lakewright.stores.memory import MemoryStore
from lakewright.stores.registry import read_store, select_backend
from lakewright.stores.write_access import write_fault
from lakewright.target_contexts import target_contexts
from lakewright.targets.target import Target
from lakewright.usecases.declared_nodes import offline_lake, sample_workspace
from lakewright.usecases.due.last_builds import RecordedBuilds
from lakewright.usecases.due.settle import settle
from lakewright.usecases.session_check import check_session

if TYPE_CHECKING:
    from lakewright.spec.models.job import Job
    from lakewright.workspace.workspace import Workspace

__all__ = ["check_request", "instance_parameters", "job_run", "plan_job", "run_job", "target_nodes"]


def plan_job(app: App, request: JobRequest) -> Plan:
    """Return what a run would do. Nothing is written anywhere, not even an empty manifest.

    A manifest that this user can only read is the plan's warning.

    Raises:
        SpecError: The job, its arguments or a definition are wrong.
    """
    settings = app.manifest_settings
    plan = read_store(settings, lambda store: job_run(app, request, store).plan())
    return replace(plan, warning=write_fault(select_backend(settings)))


def target_nodes(app: App, request: JobRequest) -> dict[str, Node]:
    """Return what each target of a job requires and provides in one phase of its first instance.

    Raises:
        SpecError: The job, its arguments or a definition are wrong.
    """
    return job_run(app, request, MemoryStore()).nodes()


def instance_parameters(app: App, request: JobRequest) -> tuple[dict[str, str], ...]:
    """Return the parameters of each instance that a run would have, as texts.

    Raises:
        SpecError: The job or its arguments are wrong.
    """
    job = app.project.job(request.job)
    scope = app.project.scope.instance(job.environment)
    instances = expand_arguments(job.parameters, request.arguments, scope)
    return tuple({name: render_value(value) for name, value in each.items()} for each in instances)


def check_request(app: App, request: JobRequest) -> None:
    """Check a job's arguments and choice of targets, before anything is read or begun.

    Raises:
        SpecError: A parameter is missing or unknown, a value is not of its type, a selector selects no
            target, or the job is wrong; the error is the one that the run would end with.
    """
    job = app.project.job(request.job)
    expand_arguments(job.parameters, request.arguments, app.project.job_scope(job))
    if request.targets:
        workspace = sample_workspace(app.project, job, offline_lake(app))
        select(request.targets, list(_selectables(workspace, job)), undone=frozenset())


def _selectables(workspace: Workspace, job: Job) -> Iterator[Selectable]:
    for name in job.target_names(workspace.scope):
        with suppress(SpecError):  # the run tells what is wrong with it
            target = Target.named(workspace, name)
            if target.enabled:
                yield Selectable(name, target.kind, target.labels(workspace))


def job_run(app: App, request: JobRequest, store: Store, interruption: Interruption | None = None) -> JobRun:
    """Return a run of a job, to be planned or executed; the store records it."""
    request = request.configured(app.project.config)
    context = target_contexts(app, request.options, store, interruption)
    journal = app.journal_of(store)
    return JobRun(
        app.project,
        app.lake,
        journal,
        request,
        context,
        app.clock,
        app.environ,
        RecordedBuilds(app, journal),
    )


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
    if request.settles and any(each.status is not Status.SKIPPED for each in result.targets()):
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
