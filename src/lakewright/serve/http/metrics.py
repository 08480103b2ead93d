"""The metrics of a project in Prometheus' text format, read from the manifest on each scrape; no JVM.

Times are instants (`…_timestamp_seconds`), from which Prometheus computes ages; what can't be read is left
out, and `lakewright_up` says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from lakewright.errors import LakewrightError
from lakewright.manifest.journal import RUNNING, Run
from lakewright.manifest.lease import LEASE, Lease
from lakewright.strategies.summary import deleted_rows
from lakewright.usecases.entities import (
    ApplicationStanding,
    EntityStanding,
    LastSlice,
    read_standings,
)

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.serve.http.site import Site
    from lakewright.serve.service import Gauges

__all__ = ["Metrics"]

log = logging.getLogger(__name__)

RECENT = 100
"""The number of latest runs that are counted."""

EFFECTS = ("inserted", "updated", "deleted", "unchanged", "quarantined")
"""What became of a row of a slice, or of a record that it lacks: each counts under one of them at most."""


class Metrics:
    """The metrics of one server, in a registry of its own.

    Args:
        site: The project and the commands of the server.
        more: Further metrics, such as those of the JVM.
    """

    def __init__(self, site: Site, more: Iterable[Callable[[], Iterable[Metric]]] = ()) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_OfProject(site, tuple(more)))
        ProcessCollector(registry=self._registry, namespace="lakewright_server")

    def text(self) -> bytes:
        """Return all metrics as a scrape gets them."""
        return generate_latest(self._registry)


@dataclass(slots=True, eq=False)
class _OfProject(Collector):
    """Collects what the manifest knows."""

    site: Site
    more: tuple[Callable[[], Iterable[Metric]], ...]
    _last: dict[str, LastSlice] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering the collector must not read the manifest."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; those of a part that can't be read are left out."""
        up = GaugeMetricFamily(
            "lakewright_up", "Whether this part is whole: the project's files, the manifest.", labels=["part"]
        )
        app = None
        try:
            app = self.site.app()
        except LakewrightError as error:
            log.warning("the project can't be read for metrics: %s", error)
        up.add_metric(["project"], float(app is not None and not app.project.faults))
        if app is not None:
            found, is_read = self._read(app)
            up.add_metric(["manifest"], float(is_read))
            yield from found
        yield up
        yield from _of_warm_session(self.site.gauges)
        yield _gauge("lakewright_commands_running", "Commands begun over HTTP.", self.site.commands.running)
        for source in self.more:
            yield from source()

    def _read(self, app: App) -> tuple[list[Metric], bool]:
        try:
            return [*self._of_slices(app), *_of_leases(app), *_of_runs(app)], True
        except LakewrightError as error:
            log.warning("the manifest can't be read for metrics: %s", error)
            return [], False

    def _of_slices(self, app: App) -> Iterator[Metric]:
        with self._lock:
            standings = read_standings(app, self._last)
            self._last = {each.name: each.last for each in standings.entities if each.last is not None}
        yield from _of_entities(standings.entities)
        yield from _of_last_slices(standings.entities)
        others = {str(application): standing for application, standing in standings.others.items()}
        yield _counts("lakewright_application_items", "application", others)
        yield _instants(
            "lakewright_application_oldest_ready_timestamp_seconds",
            "Arrival of the oldest item that is ready.",
            "application",
            {name: standing.waiting_since for name, standing in others.items()},
        )


def _of_warm_session(gauges: Gauges) -> Iterator[Metric]:
    running, waiting = gauges.running - gauges.waiting, gauges.waiting
    yield _gauge("lakewright_requests_running", "Commands that run in the server.", running)
    yield _gauge("lakewright_requests_waiting", "Commands that wait for their turn in the server.", waiting)
    for at, (name, text) in enumerate(_HEAP.items()):
        family = GaugeMetricFamily(name, text)
        if gauges.heap is not None:
            family.add_metric([], gauges.heap[at])
        yield family


_HEAP = {
    "lakewright_jvm_heap_used_bytes": "Bytes of the heap of the server's JVM that are used.",
    "lakewright_jvm_heap_max_bytes": "Bytes that the heap of the server's JVM may use.",
}


def _of_entities(entities: Iterable[EntityStanding]) -> Iterator[Metric]:
    listed = list(entities)
    standings = {each.name: each.standing for each in listed}
    yield _counts("lakewright_slices", "entity", standings)
    yield _instants(
        "lakewright_oldest_ready_timestamp_seconds",
        "Arrival of the oldest slice that is ready.",
        "entity",
        {name: standing.waiting_since for name, standing in standings.items()},
    )
    yield _instants(
        "lakewright_fresh_until_timestamp_seconds",
        "Arrival of the newest slice that is processed.",
        "entity",
        {name: standing.fresh_until for name, standing in standings.items()},
    )


def _of_last_slices(entities: Iterable[EntityStanding]) -> Iterator[Metric]:
    last = {each.name: each.last for each in entities if each.last is not None}
    rows = GaugeMetricFamily(
        "lakewright_last_slice_rows",
        "Rows of the last processed slice, by what became of them.",
        labels=["entity", "effect"],
    )
    for name, each in last.items():
        for effect in EFFECTS:
            if isinstance(number := each.metrics.get(effect), int | float):
                found = deleted_rows(each.metrics) if effect == "deleted" else number
                rows.add_metric([name, effect], found)
    yield rows
    yield _of_each(
        "lakewright_last_slice_inferred_deletes",
        "Records deleted by the last processed slice because it lacks them; they count as deleted too.",
        {name: each.metrics.get("inferred_deletes") for name, each in last.items()},
    )
    yield _of_each(
        "lakewright_last_slice_seconds",
        "How long the last processed slice took.",
        {name: each.metrics.get("seconds") for name, each in last.items()},
    )
    yield _of_each(
        "lakewright_last_slice_delete_ratio",
        "Deleted rows of the last processed slice, as a share of its rows and those that it lacks.",
        {name: each.delete_ratio for name, each in last.items()},
    )


def _of_each(name: str, text: str, values: Mapping[str, object]) -> Metric:
    """Return a metric of entities, of those that have a number."""
    family = GaugeMetricFamily(name, text, labels=["entity"])
    for entity, value in values.items():
        if isinstance(value, int | float):
            family.add_metric([entity], value)
    return family


def _of_leases(app: App) -> Iterator[Metric]:
    now = app.store.now()
    leases = [Lease.from_document(document) for document in app.store.documents(LEASE)]
    is_dead = app.journal.is_dead
    stale = [lease for lease in leases if lease.is_expired(now) or is_dead(lease.holder)]
    yield _gauge("lakewright_leases", "Leases that are held, stale ones included.", len(leases))
    yield _gauge("lakewright_stale_leases", "Leases whose holder has ended, or no longer renews.", len(stale))
    oldest = min((lease.acquired for lease in leases), default=None)
    yield _instants(
        "lakewright_oldest_lease_timestamp_seconds", "When the oldest lease was acquired.", None, {"": oldest}
    )


def _of_runs(app: App) -> Iterator[Metric]:
    runs = list(app.journal.runs(RECENT, project=app.project.name))
    counted = GaugeMetricFamily(
        "lakewright_runs", f"The latest {RECENT} runs by job and status.", labels=["job", "status"]
    )
    numbers: dict[tuple[str, str], int] = {}
    for run in runs:
        numbers[run.job, run.status] = numbers.get((run.job, run.status), 0) + 1
    for (job, status), number in numbers.items():
        counted.add_metric([job, status], number)
    yield counted
    yield _gauge("lakewright_runs_running", "Runs that are running.", sum(r.status == RUNNING for r in runs))
    yield from _of_last_runs(_last_finished(runs))


def _last_finished(newest_first: Iterable[Run]) -> dict[tuple[str, str], Run]:
    found: dict[tuple[str, str], Run] = {}
    for run in newest_first:
        if run.finished is not None:
            found.setdefault((run.job, run.phase), run)
    return found


def _of_last_runs(last: Mapping[tuple[str, str], Run]) -> Iterator[Metric]:
    labels = ["job", "phase"]
    status = GaugeMetricFamily(
        "lakewright_last_run_status", "1 for how the last run ended.", labels=[*labels, "status"]
    )
    finished = GaugeMetricFamily(
        "lakewright_last_run_finished_timestamp_seconds", "When the last run ended.", labels=labels
    )
    took = GaugeMetricFamily("lakewright_last_run_seconds", "How long the last run took.", labels=labels)
    for (job, phase), run in last.items():
        named = [job, phase.lower()]
        status.add_metric([*named, run.status], 1)
        if run.finished is not None:
            finished.add_metric(named, run.finished.timestamp())
            took.add_metric(named, (run.finished - run.started).total_seconds())
    yield from (status, finished, took)


def _counts(name: str, label: str, standings: Mapping[str, ApplicationStanding]) -> Metric:
    family = GaugeMetricFamily(name, "Items by verdict.", labels=[label, "verdict"])
    for named, standing in standings.items():
        for verdict, number in standing.counts.items():
            family.add_metric([named, verdict.value], number)
    return family


def _instants(name: str, text: str, label: str | None, instants: Mapping[str, datetime | None]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label] if label else [])
    for named, at in instants.items():
        if at is not None:
            family.add_metric([named] if label else [], at.timestamp())
    return family


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)
