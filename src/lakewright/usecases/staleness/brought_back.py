"""Rows of targets that a run has removed, and that are there again, as after a table was brought back."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.plan.other_runs import OtherRun, run_of
from lakewright.run.outputs import target_of
from lakewright.usecases.staleness.earlier_builds import former_names
from lakewright.usecases.staleness.repeated_appends import added_before

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Taint
    from lakewright.run.added_before import AddedBefore
    from lakewright.spec.models.job import Job

__all__ = ["brought_back"]


def brought_back(app: App) -> tuple[Taint, ...]:
    """Return the taints of rows that a run has removed and that are there again."""
    found = [each for each in former_names(app).taints() if each.lost_in is not None]
    jobs = list(_targets_of_jobs(app)) if found else []
    known: dict[str, AddedBefore] = {}
    return tuple(each for each in found if _is_back(app, known, _Dirty(each, _run(each, jobs))))


@dataclass(frozen=True, slots=True)
class _Dirty:
    """A taint, and the run that builds its target in its instance; None if no job does."""

    taint: Taint
    run: OtherRun | None


def _targets_of_jobs(app: App) -> Iterator[tuple[Job, frozenset[str]]]:
    for job in app.project.jobs.values():
        try:
            yield job, frozenset(job.target_names(app.project.job_scope(job)))
        except LakewrightError:  # a name that only an instance knows
            yield job, frozenset(job.targets)


def _is_back(app: App, known: dict[str, AddedBefore], dirty: _Dirty) -> bool:
    """Return whether the rows that a run has removed are there again, as far as this machine tells it."""
    if dirty.run is None:
        return False
    job, place = app.project.job(dirty.run.job), dirty.taint.place
    if job.name not in known:
        known[job.name] = added_before(app, job.name)
    added = known[job.name]
    made = target_of(app.project, added.lake, job, place.target, place.parameters)
    return made is not None and added.is_back(dirty.taint, *made)


def _run(taint: Taint, jobs: Collection[tuple[Job, frozenset[str]]]) -> OtherRun | None:
    """Return the run of the first job that builds a tainted target in its instance; None if no job does."""
    place = taint.place
    for job, targets in jobs:
        if place.target in targets and place.parameters.keys() == {each.name for each in job.parameters}:
            return run_of(job.name, place.parameters)
    return None
