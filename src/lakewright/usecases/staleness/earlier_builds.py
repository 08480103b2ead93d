"""Which instances of targets were built before slices first came into a table that they read.

Such an instance has never read these slices. That one of them is processed again makes it no more out of date
than its first processing did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from lakewright.manifest.record import State
from lakewright.manifest.settings import kept_since
from lakewright.plan.phase import Phase
from lakewright.run.former_names import FormerNames
from lakewright.run.leftovers import is_built, is_entry_undone
from lakewright.usecases.staleness.declared_nodes import offline_lake

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.item import Item
    from lakewright.manifest.journal import Run
    from lakewright.manifest.record import Application
    from lakewright.spec.models.job import Job

__all__ = [
    "RUNS",
    "Arrival",
    "Built",
    "built_before",
    "built_instances",
    "first_arrivals",
    "former_names",
]

RUNS = 100
"""Number of a job's last runs in which instances of its targets are looked for."""

Built: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
"""The name of a target, and the sorted parameters of an instance."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """The first processing of a slice into a table.

    Attributes:
        at: When it began.
        run_id: Its run; None if that is unknown.
    """

    item_id: str
    at: datetime
    run_id: str | None


def first_arrivals(app: App, application: Application, items: Iterable[Item]) -> tuple[Arrival, ...] | None:
    """Return when slices were first processed; None if that, or what was built since, is unknown of one.

    Of a slice that was recovered from the table's log, the manifest only knows when it was recovered. Of the
    time before `retention`, the history lacks runs.
    """
    since = kept_since(app.project.manifest, app.store.now)
    found = []
    for item in items:
        own = [each for each in app.store.records(item.item_id) if each.application.key == application.key]
        begun = next((each for each in own if each.state is State.PROCESSING), None)
        ended = next((each for each in own if each.state is State.PROCESSED), None)
        if begun is None or ended is None or ended.content.get("adopted"):
            return None
        if since is not None and begun.timestamp < since:
            return None
        found.append(Arrival(item.item_id, begun.timestamp, ended.run_id))
    return tuple(found)


def built_before(app: App, job: str, names: frozenset[str], arrivals: Sequence[Arrival]) -> frozenset[Built]:
    """Return the instances of targets all of whose builds ended before each of these slices arrived.

    All builds of an instance count, because runs may overlap: the run that began last need not have built it
    last. Within the run that first processed a slice, the order of the plan decides: a run keeps it between
    targets of which one writes what the other reads.
    """
    found: dict[Built, bool] = {}
    former = former_names(app)
    for run in islice(app.journal.runs(project=app.project.name, job=job), RUNS):
        entries = tuple(former.entries(run))
        first = min(_position(run, entries, each) for each in arrivals)
        for number, entry in enumerate(entries):
            if entry["name"] in names and is_built(entry):
                key = entry["name"], tuple(sorted(entry.get("instance", {}).items()))
                found[key] = found.get(key, True) and number < first
    return frozenset(key for key, is_before in found.items() if is_before)


def built_instances(
    app: App, job: Job, most: int, names: Collection[str] | None = None
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return targets with the parameters of each instance that the last runs of a job built, or found built.

    Those that were built come first, and of them the last one: a later run may have found another one clean.
    An instance that no run has finished is left out: the run that failed has marked it as dirty itself.

    Args:
        app: The project.
        job: The job.
        most: Number of its last runs that are looked at.
        names: Names of the targets; None for all.
    """
    found: list[Mapping[str, Any]] = []
    former = former_names(app)
    for run in islice(app.journal.runs(project=app.project.name, job=job.name), most):
        results = former.entries(run)
        of_run = [
            each
            for each in results
            if (names is None or each.get("name") in names)
            and each.get("phase") == Phase.BUILD.value
            and not is_entry_undone(each)
        ]
        found += reversed(of_run)
    return [(each["name"], each.get("instance", {})) for each in sorted(found, key=lambda e: not is_built(e))]


def former_names(app: App) -> FormerNames:
    """Return what finds the declared targets of names in the history that are not declared any more."""
    return FormerNames(app.project, offline_lake(app), app.journal)


def _position(run: Run, entries: Sequence[Mapping[str, Any]], arrival: Arrival) -> int:
    """Return how many entries of a run surely come before an arrival."""
    if run.run_id != arrival.run_id:
        is_earlier = run.finished is not None and run.finished < arrival.at
        return len(entries) if is_earlier else 0
    listed = (number for number, each in enumerate(entries) if _has_processed(each, arrival.item_id))
    return next(listed, 0)


def _has_processed(entry: Mapping[str, Any], item_id: str) -> bool:
    slices = (entry.get("metrics") or {}).get("slices")
    listed = slices if isinstance(slices, list) else []  # a long list may be cut
    return any(isinstance(each, Mapping) and each.get("item") == item_id for each in listed)
