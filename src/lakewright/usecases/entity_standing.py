"""How each entity stands: how many slices wait, since when, how fresh it is, and what its last slice did.

It is read from the index of standings: what it costs grows with the number of entities, not with that of
their slices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from lakewright.app import App
from lakewright.manifest.item import Verdict
from lakewright.manifest.readiness import Arrivals, Place
from lakewright.manifest.record import Application, Record, format_instant, parse_instant
from lakewright.manifest.standing import Standing
from lakewright.manifest.store import Store
from lakewright.slices.application import application_of
from lakewright.strategies.summary import deleted_rows, plain_names

__all__ = ["ApplicationStanding", "EntityStanding", "LastSlice", "Standings", "read_standings"]


@dataclass(frozen=True, slots=True)
class ApplicationStanding:
    """What an application has done with its items.

    Attributes:
        counts: The number of items in each verdict.
        oldest: The place of the first item by arrival in each verdict.
        newest: The place of the last one.
    """

    counts: Mapping[Verdict, int] = field(default_factory=dict)
    oldest: Mapping[Verdict, Place] = field(default_factory=dict)
    newest: Mapping[Verdict, Place] = field(default_factory=dict)

    @property
    def waiting_since(self) -> datetime | None:
        """When the oldest item arrived that is ready."""
        return _instant(self.oldest.get(Verdict.READY))

    @property
    def fresh_until(self) -> datetime | None:
        """When the newest item arrived that is processed."""
        return _instant(self.newest.get(Verdict.PROCESSED))

    def count(self, verdict: Verdict) -> int:
        """Return the number of items with a verdict."""
        return self.counts.get(verdict, 0)


@dataclass(frozen=True, slots=True)
class LastSlice:
    """What the last slice by arrival did that an entity has processed.

    Attributes:
        place: Its place in the order of arrival, which a further revision changes.
        at: When it was processed.
        metrics: What its record says.
    """

    item_id: str
    place: Place
    at: datetime
    metrics: Mapping[str, Any]

    @property
    def delete_ratio(self) -> float | None:
        """The deleted rows as a share of the slice's rows and those that it lacks; None without rows."""
        rows = _number(self.metrics.get("records_in_slice")) + _number(self.metrics.get("inferred_deletes"))
        return deleted_rows(self.metrics) / rows if rows else None


@dataclass(frozen=True, slots=True)
class EntityStanding:
    """An entity of the project, and what has been done with its slices."""

    name: str
    strategy: str
    enabled: bool
    application: Application
    standing: ApplicationStanding
    last: LastSlice | None = None

    @property
    def state(self) -> str:
        """The verdict of most concern among its slices; `unknown` if it has none."""
        concerns = (Verdict.INVALID, Verdict.FAILED, Verdict.LOCKED, Verdict.READY)
        found = next((verdict for verdict in concerns if self.standing.count(verdict)), None)
        return found.value if found else ("processed" if self.standing.counts else "unknown")

    def as_json(self) -> dict[str, Any]:
        """Return the entity's standing as the API shows it."""
        standing = self.standing
        return {
            "entity": self.name,
            "strategy": self.strategy,
            "enabled": self.enabled,
            "application": str(self.application),
            "state": self.state,
            "slices": {verdict.value: number for verdict, number in standing.counts.items()},
            "waiting_since": _text(standing.waiting_since),
            "fresh_until": _text(standing.fresh_until),
            "last_slice": None if self.last is None else _last_json(self.last),
        }


@dataclass(slots=True)
class Standings:
    """How the entities of a project and the other applications stand.

    Attributes:
        entities: The entities, as the project declares them.
        others: Other applications, by name and instance.
    """

    entities: list[EntityStanding]
    others: Mapping[Application, ApplicationStanding]


def read_standings(
    app: App, known: Mapping[str, LastSlice] | None = None, *, with_last_slices: bool = True
) -> Standings:
    """Return how all entities stand.

    Args:
        app: The project.
        known: The last slice of entities as read before: those that are still the last are not read again.
        with_last_slices: Whether what the last slice of each entity did is read, too.
    """
    store = app.store
    found = _by_application(store.standings(), store.arrivals())
    entities = [
        EntityStanding(
            name,
            entity.strategy.value,
            entity.enabled,
            application := application_of(app.project.name, entity),
            found.pop(application.key, ApplicationStanding()),
        )
        for name, entity in app.project.entities.items()
    ]
    others = {Application.named(*key): standing for key, standing in found.items()}
    if not with_last_slices:
        return Standings(entities, others)
    return Standings(_with_last_slices(store, entities, known or {}), others)


def _by_application(
    standings: Mapping[Standing, int], arrivals: Mapping[Standing, Arrivals]
) -> dict[tuple[str, str | None], ApplicationStanding]:
    counts: dict[tuple[str, str | None], Counter[Verdict]] = {}
    oldest: dict[tuple[str, str | None], dict[Verdict, Place]] = {}
    newest: dict[tuple[str, str | None], dict[Verdict, Place]] = {}
    for standing, number in standings.items():
        for key, verdict in _verdicts(standing):
            counts.setdefault(key, Counter())[verdict] += number
            if (ends := arrivals.get(standing)) is not None:
                first, last = oldest.setdefault(key, {}), newest.setdefault(key, {})
                first[verdict] = min(first.get(verdict, ends.first), ends.first)
                last[verdict] = max(last.get(verdict, ends.last), ends.last)
    return {
        key: ApplicationStanding(found, oldest.get(key, {}), newest.get(key, {}))
        for key, found in counts.items()
    }


@lru_cache(maxsize=4096)
def _verdicts(standing: Standing) -> tuple[tuple[tuple[str, str | None], Verdict], ...]:
    return tuple((each.key, standing.verdict(each)) for each in standing.concerned)


def _with_last_slices(
    store: Store, entities: Iterable[EntityStanding], known: Mapping[str, LastSlice]
) -> list[EntityStanding]:
    listed = list(entities)
    places = {each.name: each.standing.newest.get(Verdict.PROCESSED) for each in listed}
    found = {name: last for name, last in known.items() if last.place == places.get(name)}
    read = {name: place for name, place in places.items() if place is not None and name not in found}
    items = store.read([item_id for _, item_id in read.values()])
    wanted: dict[tuple[str, int], tuple[str, Place]] = {}
    for each in listed:
        item = items.get(read[each.name][1]) if each.name in read else None
        marks = [m for m in item.processed if m.application.covers(each.application)] if item else []
        if item is not None and marks:
            wanted[item.item_id, marks[-1].sequence] = (each.name, read[each.name])
    for key, record in store.find_records(list(wanted)).items():
        if isinstance(record, Record):
            name, place = wanted[key]
            metrics = record.content.get("metrics")
            known_metrics = plain_names(metrics) if isinstance(metrics, Mapping) else {}
            found[name] = LastSlice(record.item_id, place, record.timestamp, known_metrics)
    return [replace(each, last=found.get(each.name)) for each in listed]


def _last_json(last: LastSlice) -> dict[str, Any]:
    return {
        "item_id": last.item_id,
        "processed": format_instant(last.at),
        "delete_ratio": last.delete_ratio,
        "metrics": dict(last.metrics),
    }


def _instant(place: Place | None) -> datetime | None:
    return parse_instant(place[0]) if place is not None and place[0] else None


def _text(at: datetime | None) -> str | None:
    return None if at is None else format_instant(at)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
