"""What a scheduler's next try does: what the failed run before it has left undone."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.errors import UsageError
from lakewright.errors.phrase import Option, Phrase
from lakewright.plan.phase import Phase
from lakewright.run.leftovers import is_built
from lakewright.usecases.failed_runs.next_slices import slices_left_out
from lakewright.usecases.failed_runs.undone_runs import (
    alike_runs,
    given_instances,
    is_failed,
    is_left,
    with_resumed,
)
from lakewright.usecases.staleness.earlier_builds import former_names
from lakewright.usecases.staleness.emptied import appends_of
from lakewright.usecases.staleness.repeated_appends import instance_of, targets_adding_once

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Run
    from lakewright.run.request import JobRequest

__all__ = ["retried"]

log = logging.getLogger(__name__)


def retried(app: App, request: JobRequest) -> JobRequest:
    """Return the request of a run that is a retry, if one is asked for.

    It resumes the last run with the same arguments if this failed and nobody has done its work since. If a
    resumed run would leave out slices that wait by now, or targets that are to be built again, it runs all
    but the targets whose rows it would add once more, or would leave. Otherwise it runs all: there is no such
    run, as nothing was recorded, or it succeeded.

    Raises:
        UsageError: The request is to resume a run as well.
    """
    if not request.retry:
        return request
    if request.resume:
        raise UsageError(
            "a run is either resumed or retried",
            remedy=Phrase("Leave out ", Option("--resume"), " or ", Option("--retry"), "."),
        )
    request = replace(request, retry=False)
    chain = _chain(app, request)
    if not chain or not is_failed(chain[0]) or not is_left(app, chain[0]):
        return request
    stale = _stale(app, chain)
    left_out = bool(stale) or slices_left_out(app, chain[0])
    names = _adding_once(app, request, chain) if left_out else ()
    if untouched := sorted(stale - set(names)):
        log.warning("%s: not built by this run, and to be built again by their job", ", ".join(untouched))
    return replace(request, targets=names) if names else replace(request, resume=True)


def _stale(app: App, chain: Sequence[Run]) -> frozenset[str]:
    """Return the targets of the instances that are to be built again, and that the runs have not left so."""
    own = {run.run_id for run in chain}
    instances = given_instances(app.project)(chain[0])
    names = app.project.job(chain[0].job).targets
    taints = (each for each in former_names(app).taints() if each.run_id not in own)
    built = (instance_of(each) for each in taints if each.place.phase == Phase.BUILD.value)
    return frozenset(name for name, instance in built if name in names and instance in instances)


def _chain(app: App, request: JobRequest) -> list[Run]:
    """Return the last run, and those which it has resumed, newest first; nothing if there is none."""
    given, phase = dict(request.given), request.phase.value
    alike = alike_runs(
        app,
        request.job,
        given,
        phase,
        project=app.project.name,
        targets=request.targets,
        is_alone=request.is_alone,
    )
    return list(with_resumed(alike))


def _adding_once(app: App, request: JobRequest, chain: Sequence[Run]) -> tuple[str, ...]:
    """Return the targets to run again, without those that append and have added their rows.

    None are returned if these are all, or if the targets were not chosen by their names.
    """
    job = app.project.job(request.job)
    every = job.target_names(app.project.job_scope(job))
    if not set(request.targets) <= set(every):
        return ()
    left = targets_adding_once(app, job.name, given_instances(app.project)(chain[0]))
    names = set(every if left is None else left) - _added(app, chain)
    return tuple(name for name in request.targets or every if name in names)


def _added(app: App, chain: Sequence[Run]) -> frozenset[str]:
    """Return the targets that append and that the last run, and those which it has resumed, have built."""
    built: set[str] = set()
    for run in chain:
        entries = app.journal.targets(run.run_id)
        built |= {each["name"] for each in entries if each["phase"] == Phase.BUILD and is_built(each)}
    return frozenset(appends_of(app, app.project.job(chain[0].job), sorted(built)))
