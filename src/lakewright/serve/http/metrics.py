"""The metrics of a project in Prometheus' text format, read from the manifest on each scrape; no JVM.

Times are instants (`…_timestamp_seconds`), from which Prometheus computes ages; what can't be read is left
out, and `lakewright_up` says so.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from lakewright.errors import LakewrightError
from lakewright.manifest.journal import RUNNING, Run
from lakewright.manifest.lease import LEASE, Lease
from lakewright.strategies.summary import deleted_rows
from lakewright.usecases.entities import (
    ApplicationStanding,
    LastSlice,
    read_standings,
)

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.serve.http.site import Site
    from lakewright.warm.requests import Gauges


log = logging.getLogger(__name__)

RECENT = 100
"""The number of latest runs that are counted."""

EFFECTS = ("inserted", "updated", "deleted", "unchanged", "quarantined")
"""What became of a row of a slice, or of a record that it lacks: each counts under one of them at most."""


def metrics_of(site: Site) -> CollectorRegistry:
    """Return the metrics of a server; they are read when a scrape asks for them."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_OfProject(site))
    ProcessCollector(registry=registry, namespace="lakewright_server")
    return registry


@dataclass(slots=True, eq=False)
class _OfProject(Collector):
    """Collects what the manifest knows."""

    site: Site
    _last: dict[str, LastSlice] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering the collector must not read the manifest."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; those of a part that can't be read are left out."""
        parts = {"project": False}
        try:
            app = self.site.app()
            parts["project"] = not app.project.faults
            try:
                yield from [*self._of_slices(app), *_of_leases(app), *_of_runs(app)]
                parts["manifest"] = True
            except LakewrightError as error:
                log.warning("the manifest can't be read for metrics: %s", error)
                parts["manifest"] = False
        except LakewrightError as error:
            log.warning("the project can't be read for metrics: %s", error)
        about = "Whether this part is whole: the project's files, the manifest."
        yield _gauge("lakewright_up", about, parts, "part")
        yield from _of_warm_session(self.site.gauges)
        yield _gauge("lakewright_commands_running", "Commands begun over HTTP.", self.site.commands.running)

    def _of_slices(self, app: App) -> Iterator[Metric]:
        with self._lock:
            standings = read_standings(app, self._last)
            self._last = {each.name: each.last for each in standings.entities if each.last is not None}
        entities = {each.name: each.standing for each in standings.entities}
        yield _counts("lakewright_slices", "entity", entities)
        yield _gauge(
            "lakewright_oldest_ready_timestamp_seconds",
            "Arrival of the oldest slice that is ready.",
            {name: standing.waiting_since for name, standing in entities.items()},
            "entity",
        )
        yield _gauge(
            "lakewright_fresh_until_timestamp_seconds",
            "Arrival of the newest slice that is processed.",
            {name: standing.fresh_until for name, standing in entities.items()},
            "entity",
        )
        yield from _of_last_slices(self._last)
        others = {str(application): standing for application, standing in standings.others.items()}
        yield _counts("lakewright_application_items", "application", others)
        yield _gauge(
            "lakewright_application_oldest_ready_timestamp_seconds",
            "Arrival of the oldest item that is ready.",
            {name: standing.waiting_since for name, standing in others.items()},
            "application",
        )


def _of_warm_session(gauges: Gauges) -> Iterator[Metric]:
    running, waiting = gauges.running - gauges.waiting, gauges.waiting
    used, most = gauges.heap or (None, None)
    yield _gauge("lakewright_requests_running", "Commands that run in the server.", running)
    yield _gauge("lakewright_requests_waiting", "Commands that wait for their turn in the server.", waiting)
    yield _gauge(
        "lakewright_jvm_heap_used_bytes", "Bytes of the heap of the server's JVM that are used.", used
    )
    yield _gauge("lakewright_jvm_heap_max_bytes", "Bytes that the heap of the server's JVM may use.", most)


def _of_last_slices(last: Mapping[str, LastSlice]) -> Iterator[Metric]:
    rows = {
        (name, effect): deleted_rows(each.metrics) if effect == "deleted" else each.metrics[effect]
        for name, each in last.items()
        for effect in EFFECTS
        if isinstance(each.metrics.get(effect), int | float)
    }
    about = "Rows of the last processed slice, by what became of them."
    yield _gauge("lakewright_last_slice_rows", about, rows, "entity", "effect")
    yield _gauge(
        "lakewright_last_slice_inferred_deletes",
        "Records deleted by the last processed slice because it lacks them; they count as deleted too.",
        {name: each.metrics.get("inferred_deletes") for name, each in last.items()},
        "entity",
    )
    yield _gauge(
        "lakewright_last_slice_seconds",
        "How long the last processed slice took.",
        {name: each.metrics.get("seconds") for name, each in last.items()},
        "entity",
    )
    yield _gauge(
        "lakewright_last_slice_delete_ratio",
        "Deleted rows of the last processed slice, as a share of its rows and those that it lacks.",
        {name: each.delete_ratio for name, each in last.items()},
        "entity",
    )


def _of_leases(app: App) -> Iterator[Metric]:
    now = app.store.now()
    leases = [Lease.from_document(document) for document in app.store.documents(LEASE)]
    is_dead = app.journal.is_dead
    stale = [lease for lease in leases if lease.is_expired(now) or is_dead(lease.holder)]
    oldest = min((lease.acquired for lease in leases), default=None)
    yield _gauge("lakewright_leases", "Leases that are held, stale ones included.", len(leases))
    yield _gauge("lakewright_stale_leases", "Leases whose holder has ended, or no longer renews.", len(stale))
    yield _gauge("lakewright_oldest_lease_timestamp_seconds", "When the oldest lease was acquired.", oldest)


def _of_runs(app: App) -> Iterator[Metric]:
    runs = list(app.journal.runs(RECENT, project=app.project.name))
    counts = Counter((run.job, run.status) for run in runs)
    yield _gauge("lakewright_runs", f"The latest {RECENT} runs by job and status.", counts, "job", "status")
    yield _gauge("lakewright_runs_running", "Runs that are running.", sum(r.status == RUNNING for r in runs))
    last: dict[tuple[str, str], tuple[Run, datetime]] = {}
    for run in runs:
        if run.finished is not None:
            last.setdefault((run.job, run.phase.lower()), (run, run.finished))
    yield _gauge(
        "lakewright_last_run_status",
        "1 for how the last run ended.",
        {(*named, run.status): 1 for named, (run, _) in last.items()},
        *("job", "phase", "status"),
    )
    yield _gauge(
        "lakewright_last_run_finished_timestamp_seconds",
        "When the last run ended.",
        {named: finished for named, (_, finished) in last.items()},
        *("job", "phase"),
    )
    yield _gauge(
        "lakewright_last_run_seconds",
        "How long the last run took.",
        {named: (finished - run.started).total_seconds() for named, (run, finished) in last.items()},
        *("job", "phase"),
    )


def _counts(name: str, label: str, standings: Mapping[str, ApplicationStanding]) -> Metric:
    counted = {
        (named, verdict.value): number
        for named, standing in standings.items()
        for verdict, number in standing.counts.items()
    }
    return _gauge(name, "Items by verdict.", counted, label, "verdict")


def _gauge(name: str, text: str, value: object, *labels: str) -> Metric:
    """Return a metric, with labels of a value for each key of a mapping; what is no number is left out."""
    family = GaugeMetricFamily(name, text, labels=labels)
    values: Mapping[Any, object] = value if isinstance(value, Mapping) else {(): value}
    for named, each in values.items():
        number = each.timestamp() if isinstance(each, datetime) else each
        if isinstance(number, int | float):
            family.add_metric([named] if isinstance(named, str) else named, number)
    return family
