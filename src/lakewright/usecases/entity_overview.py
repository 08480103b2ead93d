"""An entity with its latest slices, its watermarks and its table: what an operator looks at first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lakewright.app import App
from lakewright.errors import LakewrightError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.delta_log import TableState
from lakewright.lake.observation import observe_table
from lakewright.lake.row_counts import RowCount, read_row_counts
from lakewright.manifest.item import Item, Mark, Verdict
from lakewright.manifest.readiness import Group, Place, Reading
from lakewright.manifest.record import Record, format_instant
from lakewright.manifest.watermarks import StoredWatermark, Watermarks
from lakewright.slices.application import application_of
from lakewright.slices.discover import slice_name
from lakewright.spec.models.entity import Entity
from lakewright.spec.words import counted
from lakewright.strategies.summary import deleted_rows, plain_names
from lakewright.usecases.entity_standing import EntityStanding, read_standings

__all__ = ["EntityOverview", "SliceEntry", "list_slices", "read_entity"]

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
        found = self.content.get("metrics")
        return plain_names(found) if isinstance(found, Mapping) else {}

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
        return {
            "item_id": self.item.item_id,
            "slice": self.name,
            "verdict": self.verdict.value,
            "since": None if self.at is None else format_instant(self.at),
            "size": self.size,
            "metrics": dict(self.metrics),
        }


@dataclass(frozen=True, slots=True)
class EntityOverview:
    """An entity as it is declared, and as it stands.

    Attributes:
        slices: Its latest slices by arrival, the newest first.
        table: Its table; None if it can't be observed without Spark.
        note: Why the table can't be observed.
        row_counts: The rows of the table at its latest versions, the oldest first, as far as its log tells.
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
            "recent": [each.as_json() for each in self.slices],
            "watermarks": [each.as_json() for each in self.watermarks],
            "columns": [
                {"name": column.name, "type": column.type.ddl}
                for column in (self.table.columns if self.table else ())
            ],
            "version": self.table.version if self.table else None,
            "note": self.note,
            "row_counts": [
                {
                    "version": each.version,
                    "at": None if each.at is None else format_instant(each.at),
                    "operation": each.operation,
                    "rows": each.rows,
                }
                for each in self.row_counts
            ],
            "places": dict(self.places),
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
    table, note = _table(app, entity, standing.standing.count(Verdict.PROCESSED))
    watermarks = Watermarks(app.store).all(prefix=f"{standing.application}/")
    return EntityOverview(
        entity=entity,
        standing=standing,
        slices=list_slices(app, standing, Reading(is_newest_first=True, limit=MOST_SLICES)),
        watermarks=[each for each in watermarks if each.application.key == standing.application.key],
        table=table,
        note=note,
        places=_places(app, entity),
        now=app.store.now(),
        row_counts=_row_counts(app, entity),
    )


def _places(app: App, entity: Entity) -> Mapping[str, str]:
    """Return where the slices and the table are; nothing if that depends on the parameters of a job."""
    try:
        places = entity.places(app.project.lake)
    except LakewrightError:  # the note of the table says so already
        return {}
    return {"slices": places.bronze_table or places.bronze, "table": str(places.silver)}


def _row_counts(app: App, entity: Entity) -> tuple[RowCount, ...]:
    try:
        return read_row_counts(app.lake, entity.places(app.lake.settings).silver, MOST_VERSIONS)
    except LakewrightError:  # the note of the table says so already
        return ()


def list_slices(
    app: App, standing: EntityStanding, reading: Reading, verdicts: frozenset[Verdict] = frozenset()
) -> list[SliceEntry]:
    """Return slices of an entity with what their records say; a page at a time."""
    application, store = standing.application, app.store
    chosen = frozenset(
        each
        for each in store.standings()
        if any(known.key == application.key for known in each.concerned)
        and (not verdicts or each.verdict(application) in verdicts)
    )
    items = list(store.queue(Group(chosen), reading)) if chosen else []
    marks = {item.item_id: mark for item in items if (mark := _ended(item, standing)) is not None}
    records = store.find_records([(item_id, mark.sequence) for item_id, mark in marks.items()])
    contents = {
        item_id: record.content
        for (item_id, _), record in records.items()
        if isinstance(record, Record) and not record.is_foreign
    }
    return [
        SliceEntry(
            item,
            slice_name(item),
            item.verdict(application),
            marks[item.item_id].since if item.item_id in marks else item.since,
            contents.get(item.item_id, {}),
        )
        for item in items
    ]


def _ended(item: Item, standing: EntityStanding) -> Mark | None:
    """Return the record with which the last attempt at an item ended for an entity."""
    if item.failed is not None:
        return item.failed
    done = [mark for mark in item.processed if mark.application.covers(standing.application)]
    return done[-1] if done else None


def _table(app: App, entity: Entity, processed: int) -> tuple[TableState | None, str | None]:
    try:
        state = observe_table(app.lake, entity.places(app.lake.settings).silver)
    except LakewrightError as error:
        return None, error.message
    if state.exists:
        return state, None
    if not processed:
        return state, "there is no table yet: the first slice creates it"
    were = "was" if processed == 1 else "were"
    typed = Command("doctor", entity.called)
    gone = f"there is no table, although {counted(processed, 'slice')} of it {were} processed"
    return state, Phrase(f"{gone}: ", typed, " examines it")
