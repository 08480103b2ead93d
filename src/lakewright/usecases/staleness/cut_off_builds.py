"""Instances into which runs that were cut off may have written rows, although no build of them is recorded.

What such a run has read may have changed since. If it is resumed, it finds its rows, and adds none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.manifest.journal import ABORTED
from lakewright.plan.phase import Phase
from lakewright.run.leftovers import is_entry_undone
from lakewright.run.outputs import are_near, target_of
from lakewright.usecases.staleness.declared_nodes import offline_lake
from lakewright.usecases.staleness.earlier_builds import former_names
from lakewright.usecases.staleness.emptied import appends_of

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Taint
    from lakewright.spec.models.job import Job

__all__ = ["cut_off_builds"]


def cut_off_builds(
    app: App,
    job: Job,
    names: Collection[str],
    *,
    run_id: str | None = None,
    since: datetime | None = None,
) -> Iterator[Taint]:
    """Yield the taints of targets that keep rows, into which a run that was cut off may have written some.

    Args:
        app: The project.
        job: The job.
        names: Names of its targets whose builds leave rows of before.
        run_id: A run that has read what is there now: what it has begun is left out.
        since: When what they read changed first; what had ended before is left out.
    """
    parameters = {each.name for each in job.parameters}
    taints = [
        each
        for each in former_names(app).taints()
        if each.place.phase == Phase.BUILD.value
        and each.place.target in names
        and each.place.parameters.keys() == parameters
        and each.run_id not in (None, run_id)
    ]
    appends = appends_of(app, job, names) if taints else {}
    for taint in taints:
        run = app.journal.run(str(taint.run_id))
        if run is not None and since is not None and run.finished is not None and run.finished < since:
            continue
        if taint.append_id is not None:
            has_written = _has_landed(app, job, taint)
        elif taint.place.target in appends:  # one that has begun says so
            has_written = taint.kept is not None
        else:
            is_cut_off = run is None or run.finished is None or run.status == ABORTED
            has_written = is_cut_off and not _is_unreached(app, taint)
        if has_written:
            yield taint


def _has_landed(app: App, job: Job, taint: Taint) -> bool:
    """Return whether the rows of an append are there, or whether nobody knows."""
    place = taint.place
    made = target_of(app.project, offline_lake(app), job, place.target, place.parameters)
    if made is None or not are_near(made[0].provides(made[1], Phase.BUILD)):
        return True
    try:
        return made[0].has_appended(made[1], str(taint.append_id))
    except LakewrightError:  # who looks at the table tells it
        return True


def _is_unreached(app: App, taint: Taint) -> bool:
    """Return whether the run has recorded that it did not build the target."""
    place = taint.place
    return any(
        is_entry_undone(each) and each["status"] != ABORTED
        for each in app.journal.targets(str(taint.run_id))
        if (each["name"], each["phase"], each.get("instance", {}))
        == (place.target, place.phase, dict(place.parameters))
    )
