"""Runs of jobs, to be planned or executed, and what they would build."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lakewright.manifest.store import Store, Write
from lakewright.run.job import JobRun
from lakewright.usecases.due.last_builds import RecordedBuilds

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.run.execution import Interruption
    from lakewright.run.request import JobRequest


def job_run(app: App, request: JobRequest, store: Store, interruption: Interruption | None = None) -> JobRun:
    """Return a run of a job, to be planned or executed; the store records it."""
    request = request.configured(app.project.config)
    context = partial(app.context, options=request.options, store=store, interruption=interruption)
    journal = app.journal_of(store)
    return JobRun(
        project=app.project,
        lake=app.lake,
        journal=journal,
        request=request,
        context=context,
        last_builds=RecordedBuilds(app, journal),
        clock=app.clock,
        environ=app.environ,
    )


def want_builds(app: App, request: JobRequest) -> None:
    """Record that what a run of a job would build is wanted, so that it is due until it is built.

    Raises:
        SpecError: The job, its arguments or a definition are wrong.
    """
    app.make_store()
    puts = job_run(app, request, app.store).wanted(run_id=app.run_id, holder=app.holder)
    app.store.write(Write(puts=puts))
