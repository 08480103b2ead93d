"""Targets that were built again while what they read still is to be: they stay dirty until after that."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.manifest.journal import TargetPhase
from lakewright.manifest.store import Write
from lakewright.plan.phase import Phase
from lakewright.run.leftovers import is_built
from lakewright.run.outputs import read_by, written_by
from lakewright.spec.words import first_of
from lakewright.usecases.declared_nodes import offline_lake
from lakewright.usecases.emptied import kept_rows_of

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Taint
    from lakewright.manifest.store import Put
    from lakewright.plan.resource import Resource
    from lakewright.run.result import RunResult
    from lakewright.spec.models.job import Job

__all__ = ["keep_dirty"]

MOST_NAMED = 3

log = logging.getLogger(__name__)


def keep_dirty(app: App, before: Iterable[Taint], run: RunResult) -> None:
    """Taint what a run has built from the output of targets that are to be built again.

    Only what was dirty itself is looked at: it was built again because of a change that these targets lack.

    Args:
        app: The project.
        before: The taints from before the run.
        run: The run.
    """
    try:
        left = {each.place.key: each for each in app.journal.taints(app.project.name)}
        dirty = [each for each in left.values() if each.place.phase == Phase.BUILD.value]
        gone = [each.place for each in before if each.place.key not in left] if dirty else []
        if puts := tuple(_stale(app, gone, dirty, run)):
            app.store.write(Write(puts=puts))
    except LakewrightError as error:  # the run has ended, and its results are recorded
        log.warning("targets that read what is to be built again could not be marked as dirty: %s", error)


def _stale(app: App, gone: Collection[TargetPhase], dirty: Iterable[Taint], run: RunResult) -> Iterator[Put]:
    job = app.project.jobs.get(run.job)
    if job is None or not gone:
        return
    built = {
        TargetPhase(app.project.name, each["name"], each["phase"], each.get("instance", {})).key
        for each in app.journal.targets(run.run_id)
        if is_built(each)
    }
    stale = [place for place in gone if place.key in built]
    written = [(each, _written(app, each.place)) for each in dirty] if stale else []
    for place in stale:
        read = read_by(app.project, offline_lake(app), job, place.target, place.parameters)
        names = sorted({each.place.target for each, places in written if _meet(read, places)})
        if names:
            yield _tainted(app, job, place, names, run)


def _tainted(app: App, job: Job, place: TargetPhase, names: list[str], run: RunResult) -> Put:
    verb = "is" if len(names) == 1 else "are"
    reason = f"run {run.run_id} built it from {first_of(names, MOST_NAMED)}, which {verb} to be built again"
    words = kept_rows_of(app, job, [place.target]).get(place.target)
    return place.tainted(reason, kept=None if words is None else f"{reason}, and {words}")


def _written(app: App, place: TargetPhase) -> frozenset[Resource]:
    for job in app.project.jobs.values():
        if place.target in job.targets:
            found = written_by(app.project, offline_lake(app), job, place.target, place.parameters)
            if found:
                return found
    return frozenset()


def _meet(read: frozenset[Resource], written: frozenset[Resource]) -> bool:
    return any(each.intersects(one) for each in read for one in written)
