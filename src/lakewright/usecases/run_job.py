"""Plan and run jobs, and the project's own tests."""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from lakewright.app import App
from lakewright.errors import LakewrightError, SpecError, UsageError
from lakewright.lake.lake import Lake
from lakewright.manifest.settings import kept_since
from lakewright.plan.graph import Node
from lakewright.plan.permissions import Permissions
from lakewright.plan.selectors import Selectable, select
from lakewright.plan.status import Status
from lakewright.plan.step import Plan
from lakewright.run.case import CaseResult, CaseRun, redirected_lake, redirects_of
from lakewright.run.execution import Interruption, Listener
from lakewright.run.request import JobRequest
from lakewright.run.result import RunResult
from lakewright.run.session_settings import settings_of_tests
from lakewright.spec.arguments import expand_arguments
from lakewright.spec.loading.case_setup import set_up_case
from lakewright.spec.suggestions import suggestion
from lakewright.stores.backend import write_fault
from lakewright.stores.memory import MemoryStore
from lakewright.stores.registry import read_store, select_backend
from lakewright.targets.context import RunOptions
from lakewright.targets.target import Target
from lakewright.usecases.declared_nodes import offline_lake, sample_workspace
from lakewright.usecases.due.job_runs import job_run
from lakewright.usecases.due.observe import settle

if TYPE_CHECKING:
    from lakewright.spec.models.job import Job
    from lakewright.workspace.workspace import Workspace


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
    return tuple(job_run(app, request, MemoryStore()).instances())


def check_request(app: App, request: JobRequest) -> None:
    """Check a job's arguments and choice of targets, before anything is read or begun.

    Raises:
        SpecError: A parameter is missing or unknown, a value is not of its type, a selector selects no
            target, or the job is wrong; the error is the one that the run would end with.
    """
    job = app.project.job(request.job)
    expand_arguments(job.parameters, request.arguments, app.project.job_scope(job))
    if request.targets:
        workspace = sample_workspace(app.project, job, offline_lake(app.project))
        select(request.targets, list(_selectables(workspace, job)), undone=frozenset())


def _selectables(workspace: Workspace, job: Job) -> Iterator[Selectable]:
    for name in job.target_names(workspace.scope):
        with suppress(SpecError):  # the run reports what is wrong with it
            target = Target.named(workspace, name)
            if target.enabled:
                yield Selectable(name, target.kind, target.labels(workspace))


log = logging.getLogger(__name__)


def run_job(app: App, request: JobRequest, *, listener: Listener, interruption: Interruption) -> RunResult:
    """Run a job and return the result; the history records the run from its start.

    Runs that are older than the manifest's retention are removed from the history afterwards.

    Raises:
        SpecError: The job, its arguments or a definition are wrong; nothing ran.
        StoreUnavailable: The manifest's back end does not answer; nothing ran.
        SparkUnavailable: The Spark session of this process has no Delta Lake; nothing ran.
    """
    app.check_session()
    since = kept_since(app.project.manifest, app.store.now)
    app.make_store()
    result = job_run(app, request, app.store, interruption).run(
        run_id=app.run_id,
        holder=app.holder,
        listener=listener,
        interruption=interruption,
        facts={
            "versions": {name: _version(name) for name in ("lakewright", "pyspark")},
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


def select_tests(app: App, names: Sequence[str] = ()) -> list[str]:
    """Return the names of the project's tests that match these patterns; without patterns, all tests.

    A test that exists only for others to extend is left out unless a pattern matches it.

    Raises:
        UsageError: A pattern matches no test.
    """
    known = list(app.project.tests)
    for name in names:
        if not fnmatch.filter(known, name):
            raise UsageError(f"there is no test {name!r}", remedy=suggestion(name, known))
    if not names:
        return [name for name in known if not _is_only_extended(app, name)]
    return [name for name in known if any(fnmatch.fnmatchcase(name, each) for each in names)]


def run_tests(
    app: App,
    names: Sequence[str],
    *,
    listener: Listener,
    interruption: Interruption,
    keep_going: bool = False,
) -> Iterator[CaseResult]:
    """Run tests one after the other and yield each result, until a signal interrupts them.

    The project's lake, manifest and history are not touched. With `keep_going`, assertions are checked even
    if the build failed or another assertion raised an error.
    """
    with rehearsal(app, interruption, keep_going=keep_going) as case_run:
        for name in names:
            if interruption.signal is not None:
                return
            try:
                yield case_run(name).run(app.holder, listener, interruption)
            except LakewrightError as error:
                yield CaseResult(name, error=error.as_fault())


def plan_tests(app: App, names: Sequence[str]) -> list[Plan]:
    """Return what each test would build.

    Raises:
        SpecError: A test is not declared correctly.
    """
    with rehearsal(app) as case_run:
        return [case_run(name).plan() for name in names]


def _is_only_extended(app: App, name: str) -> bool:
    raw = app.project.tests[name].raw
    return not any(raw.get(key) for key in ("targets", "fixtures", "assertions", "extends"))


@contextmanager
def rehearsal(
    app: App, interruption: Interruption | None = None, *, keep_going: bool = False
) -> Iterator[Callable[[str], CaseRun]]:
    """Yield a function that prepares a test by name; tests write to a folder that is removed afterwards."""
    # Spark may still write to the folder while it is removed; what is left then goes at the end.
    with TemporaryDirectory(prefix="lakewright-test-", ignore_cleanup_errors=True) as folder:
        session = settings_of_tests(app.project, Path(folder))
        shared = Lake(app.project.lake, session, sessions=app.sessions, storage=app.lake.storage)
        options = RunOptions(permissions=Permissions(allow_data_loss=True))

        def case_run(name: str) -> CaseRun:
            setup, store = set_up_case(app.project, name), MemoryStore()
            redirects = redirects_of(setup, shared, Path(folder) / f"test-{name}")
            return CaseRun(
                stage=setup,
                lake=redirected_lake(shared, redirects),
                journal=app.journal_of(store),
                context=partial(app.context, options=options, store=store, interruption=interruption),
                clock=app.clock,
                environ=app.environ,
                keep_going=keep_going,
            )

        try:
            yield case_run
        finally:
            shared.stop()
    rmtree(folder, ignore_errors=True)
