"""What a scheduler's next try does: what the failed run before it has left undone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.errors import UsageError
from lakewright.usecases.failed_runs.resume import next_step
from lakewright.usecases.failed_runs.undone_runs import RECENT, given_instances, runs_to_resume
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
    recent = tuple(app.journal.runs(RECENT))
    run = next((each for each in runs_to_resume(app, recent) if _is_same(app, each, request)), None)
    if run is None:
        return request
    if next_step(app, run).left_out is None:
        return replace(request, resume=True)
    names = targets_adding_once(app, request.job, given_instances(app.project)(run))
    return replace(request, targets=request.targets or names or ())


def _is_same(app: App, run: Run, request: JobRequest) -> bool:
    """Return whether a run was of the same job, arguments, phases and targets."""
    return (
        (run.project, run.job, run.phase) == (app.project.name, request.job, request.phase.value)
        and run.parameters == app.journal.hide_secrets(request.given)
        and bool(run.facts.get("no_lifecycle")) == request.is_alone
        and tuple(run.facts.get("targets") or ()) == request.targets
    )
