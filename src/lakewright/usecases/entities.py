"""Entities as an operator sees them: how each stands, its latest slices, its watermarks and its table.

How entities stand is read from the index of standings: what it costs grows with the number of entities, not
with that of their slices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from lakewright.app import App
from lakewright.errors import LakewrightError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.delta_log import TableState
from lakewright.lake.observation import local_table_path, observe_table
from lakewright.lake.row_counts import RowCount, read_row_counts
from lakewright.manifest.item import Item, Mark
from lakewright.manifest.plain_values import document_of, json_of
from lakewright.manifest.readiness import Arrivals, Group, Place, Reading
from lakewright.manifest.record import Application, Record, parse_instant
from lakewright.manifest.standing import Standing
from lakewright.manifest.store import Store
from lakewright.manifest.verdict import Verdict
from lakewright.manifest.watermarks import StoredWatermark, Watermarks
from lakewright.slices.application import application_of
from lakewright.slices.discovery import slice_name
from lakewright.spec.models.entity import Entity
from lakewright.spec.words import counted
from lakewright.strategies.summary import deleted_rows, plain_names


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

    def as_json(self) -> dict[str, Any]:
        """Return the slice as the API shows it."""
        return document_of(self, "item_id", "delete_ratio", "metrics", processed=self.at)


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
        return {
            "entity": self.name,
            "application": str(self.application),
            "slices": {verdict.value: number for verdict, number in self.standing.counts.items()},
            **document_of(self, "strategy", "enabled", "state"),
            **document_of(self.standing, "waiting_since", "fresh_until"),
            "last_slice": json_of(self.last),
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
    ended = {
        each.name: (item, mark)
        for each in listed
        if (item := items.get(read[each.name][1]) if each.name in read else None) is not None
        and (mark := item.processed_by(each.application)) is not None
    }
    records = _records(store, ended.values())
    for name, (item, _) in ended.items():
        if (record := records.get(item.item_id)) is not None:
            metrics = metrics_of(record.content)
            found[name] = LastSlice(item.item_id, read[name], record.timestamp, metrics)
    return [replace(each, last=found.get(each.name)) for each in listed]


def _instant(place: Place | None) -> datetime | None:
    return parse_instant(place[0]) if place is not None and place[0] else None


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


MOST_SLICES = 60

MOST_VERSIONS = 60
"""The largest number of versions whose rows are counted."""


@dataclass(frozen=True, slots=True)
class SliceEntry:
    """A slice of an entity, with what its record says if it is processed.

    Attributes:
        at: When it got its verdict.
        content: The content of its PROCESSED or FAILED record.
    """

    item: Item
    name: str
    verdict: Verdict
    at: datetime | None
    content: Mapping[str, Any] = field(default_factory=dict)

    @property
    def metrics(self) -> Mapping[str, Any]:
        """What processing it counted."""
        return metrics_of(self.content)

    @property
    def deleted_rows(self) -> int:
        """How many rows of the table it deleted, in whatever way."""
        return deleted_rows(self.metrics)

    @property
    def size(self) -> int | None:
        """The size of its files in bytes."""
        fingerprint = self.item.fingerprint or {}
        found = fingerprint.get("size")
        return found if isinstance(found, int) else None

    @property
    def place(self) -> Place:
        """Its place in the order of arrival."""
        return (self.item.arrival, self.item.item_id)

    def as_json(self) -> dict[str, Any]:
        """Return the slice as the API shows it."""
        named = {"item_id": self.item.item_id, "slice": self.name}
        return {**named, **document_of(self, "verdict", "size", "metrics", since=self.at)}


@dataclass(frozen=True, slots=True)
class EntityOverview:
    """An entity as it is declared, and as it stands.

    Attributes:
        slices: Its latest slices by arrival, the newest first.
        table: Its table; None if it can't be observed without Spark.
        note: Why the table can't be observed.
        row_counts: The rows of the table at its latest versions, the oldest first, as its log has them.
        last_drift: What differed between the last slice that differed and the table.
    """

    entity: Entity
    standing: EntityStanding
    slices: Sequence[SliceEntry]
    watermarks: Sequence[StoredWatermark]
    table: TableState | None
    note: str | None
    places: Mapping[str, str]
    now: datetime
    row_counts: Sequence[RowCount] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the overview as the API shows it."""
        return {
            **self.standing.as_json(),
            "recent": json_of(self.slices),
            "columns": [
                {"name": column.name, "type": column.type.ddl}
                for column in (self.table.columns if self.table else ())
            ],
            "version": self.table.version if self.table else None,
            **document_of(self, "watermarks", "note", "row_counts", "places"),
        }


def read_entity(app: App, name: str) -> EntityOverview:
    """Return an entity with its latest slices.

    Raises:
        SpecError: There is no such entity.
    """
    entity = app.project.entity(name)
    standings = read_standings(app, with_last_slices=False)
    own = application_of(app.project.name, entity)
    standing = next(each for each in standings.entities if each.application == own)
    where: Mapping[str, str] = {}
    table, row_counts = None, tuple[RowCount, ...]()
    try:
        places = entity.places(app.project.lake)
        where = {"slices": places.bronze_table or places.slices.pattern, "table": str(places.silver)}
        table = observe_table(app.lake, places.silver)
        row_counts = read_row_counts(app.lake, places.silver, MOST_VERSIONS)
        note = None if table.exists else _missing(entity, standing.standing.count(Verdict.PROCESSED))
    except LakewrightError as error:  # where it is may depend on the parameters of a job
        note = error.message
    watermarks = Watermarks(app.store).all(prefix=f"{standing.application}/")
    return EntityOverview(
        entity=entity,
        standing=standing,
        slices=list_slices(app, standing, Reading(is_newest_first=True, limit=MOST_SLICES)),
        watermarks=[each for each in watermarks if each.application.key == standing.application.key],
        table=table,
        note=note,
        places=where,
        now=app.store.now(),
        row_counts=row_counts,
    )


def list_slices(app: App, standing: EntityStanding, reading: Reading) -> list[SliceEntry]:
    """Return slices of an entity with what their records say; a page at a time."""
    application, store = standing.application, app.store
    chosen = frozenset(
        each for each in store.standings() if any(known.key == application.key for known in each.concerned)
    )
    items = list(store.select(Group(chosen), reading)) if chosen else []
    marks = {item.item_id: mark for item in items if (mark := _ended(item, standing)) is not None}
    records = _records(store, ((item, marks[item.item_id]) for item in items if item.item_id in marks))
    return [
        SliceEntry(
            item,
            slice_name(item),
            item.verdict(application),
            marks[item.item_id].since if item.item_id in marks else item.since,
            records[item.item_id].content if item.item_id in records else {},
        )
        for item in items
    ]


def _ended(item: Item, standing: EntityStanding) -> Mark | None:
    """Return the record with which the last attempt at an item ended for an entity."""
    return item.failed or item.processed_by(standing.application)


def _records(store: Store, marks: Iterable[tuple[Item, Mark]]) -> dict[str, Record]:
    """Return the records of marks by item; those that another program has written are left out."""
    found = store.find_records([(item.item_id, mark.sequence) for item, mark in marks])
    return {
        item_id: record
        for (item_id, _), record in found.items()
        if isinstance(record, Record) and not record.is_foreign
    }


def metrics_of(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what processing a slice counted, as its record says."""
    found = content.get("metrics")
    return plain_names(found) if isinstance(found, Mapping) else {}


def _missing(entity: Entity, processed: int) -> str:
    """Return why there is no table of an entity, of which so many slices are processed."""
    if not processed:
        return "there is no table yet: the first slice creates it"
    were = "was" if processed == 1 else "were"
    gone = f"there is no table, although {counted(processed, 'slice')} of it {were} processed"
    return Phrase(f"{gone}: ", Command("doctor", entity.called), " examines it")


LONGEST = 200


@dataclass(frozen=True, slots=True)
class RowSample:
    """Rows as text; None is null. `note` says why there are none."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    note: str | None = None


def read_sample(app: App, entity: Entity, limit: int) -> RowSample:
    """Return some rows of an entity's table, in no particular order."""
    path = local_table_path(app.lake, entity.places(app.lake.settings).silver)
    if path is None:
        return RowSample(note=Phrase("only Spark can read this table; ", Command("sql"), " shows its rows"))
    try:
        return _sampled(str(path), limit)
    except Exception as error:  # a table that this reader does not know, or none
        first = next(iter(str(error).splitlines()), type(error).__name__)
        return RowSample(note=f"the table can't be read here: {first}")


def _sampled(path: str, limit: int) -> RowSample:
    from deltalake import DeltaTable, QueryBuilder

    reader = QueryBuilder().register("sample", DeltaTable(path))
    batches = reader.execute(f"SELECT * FROM sample LIMIT {limit:d}")  # noqa: S608 - a number of ours
    columns: tuple[str, ...] = ()
    rows: list[tuple[str | None, ...]] = []
    for batch in batches:
        columns = tuple(batch.schema.names)
        values = [batch.column(at).to_pylist() for at in range(len(columns))]
        rows += [tuple(map(_shown, row)) for row in zip(*values, strict=True)]
    return RowSample(columns, tuple(rows), None if rows else "the table is empty")


def _shown(value: Any) -> str | None:
    return None if value is None else str(value)[:LONGEST]
