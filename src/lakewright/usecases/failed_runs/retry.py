"""What a scheduler's next try does: what the failed run before it has left undone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.errors import UsageError
from lakewright.plan.phase import Phase
from lakewright.run.leftovers import is_built
from lakewright.usecases.failed_runs.resume import next_step
from lakewright.usecases.failed_runs.undone_runs import RECENT, given_instances, is_failed, is_left
from lakewright.usecases.staleness.emptied import appends_of
from lakewright.usecases.staleness.repeated_appends import targets_adding_once

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Run
    from lakewright.run.request import JobRequest

__all__ = ["retried"]


def retried(app: App, request: JobRequest) -> JobRequest:
    """Return the request of a run that is a retry, if one is asked for.

    It resumes the last run with the same arguments if this failed and nobody has done its work since. If
    slices wait by now that a resumed run would leave out, it runs all but the targets whose rows it would add
    once more. Otherwise it runs all: there is no such run, as nothing was recorded, or it succeeded.

    Raises:
        UsageError: The request is to resume a run as well.
    """
    if not request.retry:
        return request
    if request.resume:
        raise UsageError("a run is either resumed or retried", remedy="Leave out --resume or --retry.")
    request = replace(request, retry=False)
    last = next(_alike(app, request), None)
    if last is None or not is_failed(last) or not is_left(app, last):
        return request
    names = _adding_once(app, request, last) if next_step(app, last).left_out is not None else ()
    return replace(request, targets=names) if names else replace(request, resume=True)


def _alike(app: App, request: JobRequest) -> Iterator[Run]:
    """Yield the last runs of the same job, arguments, phases and targets, newest first."""
    for run in app.journal.runs(
        RECENT, project=app.project.name, job=request.job, parameters=dict(request.given)
    ):
        is_alone = bool(run.facts.get("no_lifecycle")) == request.is_alone
        chosen = tuple(run.facts.get("targets") or ())
        if run.phase == request.phase.value and is_alone and chosen == request.targets:
            yield run


def _adding_once(app: App, request: JobRequest, last: Run) -> tuple[str, ...]:
    """Return the targets to run again, without those that append and have added their rows.

    None are returned if these are all, or if the targets were not chosen by their names.
    """
    job = app.project.job(request.job)
    every = job.target_names(app.project.job_scope(job))
    if not set(request.targets) <= set(every):
        return ()
    left = targets_adding_once(app, job.name, given_instances(app.project)(last))
    names = set(every if left is None else left) - _added(app, request)
    return tuple(name for name in request.targets or every if name in names)


def _added(app: App, request: JobRequest) -> frozenset[str]:
    """Return the targets that append and that the last run, and those which it has resumed, have built."""
    built: set[str] = set()
    for run in _alike(app, request):
        entries = app.journal.targets(run.run_id)
        built |= {each["name"] for each in entries if each["phase"] == Phase.BUILD and is_built(each)}
        if not run.facts.get("resume"):
            break
    return frozenset(appends_of(app, app.project.job(request.job), sorted(built)))
