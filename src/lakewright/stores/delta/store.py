"""The manifest in a Delta table.

Each write is one version of the table, made only as the one after that which it was worked out from: who
comes second reads again. So there is no lock that could be left behind, and no write is lost; but writers
wait for each other, and each write costs the object storage several round trips.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any

from lakewright.errors import IllegalTransition, LakewrightError, ManifestCorrupt, NotInstalled, SpecError
from lakewright.manifest.batch import Batch, document_keys, is_storable, item_ids
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.record import Application, Record
from lakewright.manifest.replay import replay
from lakewright.manifest.store import Damage, Document, DocumentKey, Query, Seen, Write, Written
from lakewright.stores.delta.rows import (
    Line,
    batch_lines,
    document_of,
    item_line,
    item_of,
    record_of,
)
from lakewright.stores.delta.table import Overtaken, Table, among, is_there, quoted

__all__ = ["DeltaStore"]

BATCH = 500
"""Writes of one version, and names of one question."""

Outcome = Written | LakewrightError


def _keep(lines: Iterable[Line]) -> Iterable[Line]:
    """Leave lines as they are: the first layout."""
    return lines


MIGRATIONS: Sequence[Callable[[Iterable[Line]], Iterable[Line]]] = (_keep,)
"""What takes the lines from one version of the layout to the next."""


class DeltaStore:
    """A manifest in a Delta table, which is made where there is none.

    Args:
        location: A folder, or the URL of a place in object storage.
        clock: Gives the store's time, in UTC; object storage has no clock to ask, so it is the writer's.
    """

    def __init__(self, location: str, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._table = Table(location, [_layout(len(MIGRATIONS), 0)])
        self._migrate()

    @classmethod
    def open(cls, settings: Mapping[str, Any]) -> DeltaStore:
        """Return the store in the table that `location` names."""
        return cls(_place(settings))

    @classmethod
    def look(cls, settings: Mapping[str, Any]) -> DeltaStore | datetime:
        """Return the store, or the time where there is no such table."""
        return cls.open(settings) if is_there(_place(settings)) else datetime.now(UTC)

    def _migrate(self) -> None:
        """Bring the table to this layout, in one version."""
        for _ in self._table.attempts():
            at = self._table.refresh()
            present, wanted = self._layout(), len(MIGRATIONS)
            if present > wanted:
                raise NotInstalled(
                    f"{self._table.where} has schema version {present}, "
                    f"this Lakewright knows versions up to {wanted}",
                    remedy="Install the version of Lakewright that last wrote it, or a newer one.",
                )
            if present == wanted:
                return
            lines: Iterable[Line] = self._table.newest("sort <> 'schema'")
            for step in MIGRATIONS[present:]:
                lines = step(lines)
            try:
                self._table.replace(chain([_layout(wanted, at)], lines), at)
            except Overtaken:
                continue

    def _layout(self) -> int:
        return max((line.number for line in self._table.newest("sort = 'schema'")), default=0)

    def now(self) -> datetime:
        """Return the writer's time, in UTC."""
        return self._clock()

    def write(self, write: Write) -> Written:
        """Put down one write, durably."""
        outcome = self._put_down([write])[0]
        if isinstance(outcome, LakewrightError):
            raise outcome
        return outcome

    def write_many(self, writes: Iterable[Write]) -> Iterator[Outcome]:
        """Put down many independent writes in few versions, and yield what became of each."""
        iterator = iter(writes)
        while batch := list(islice(iterator, BATCH)):
            yield from self._put_down(batch)

    def _put_down(self, writes: Sequence[Write]) -> Sequence[Outcome]:
        for _ in self._table.attempts():
            at = self._table.refresh()
            seen = self._find(item_ids(writes), document_keys(writes))
            batch = Batch(items=dict(seen.items), documents=dict(seen.documents), now=self.now())
            taken = self._taken(writes)
            outcomes = [_attempt(batch, write, taken) for write in writes]
            lines = batch_lines(batch, at)
            try:
                if lines:
                    self._table.append(lines, at)
            except Overtaken:
                continue
            return outcomes
        raise AssertionError("attempts end by themselves")

    def _taken(self, writes: Sequence[Write]) -> set[str]:
        """Return the ids of records that are there, of those to be written."""
        ids = {draft.record_id for w in writes for append in w.appends for draft in append.drafts}
        there = self._table.newest(f"sort = 'id' AND {among('name', filter(is_storable, ids))}")
        return {line.name for line in there} if ids else set()

    def read(self, item_ids: Sequence[str]) -> Mapping[str, Item]:
        """Return the folds of these items; an item without records is left out."""
        return self.look_up(item_ids, []).items

    def look_up(self, item_ids: Sequence[str], keys: Sequence[DocumentKey]) -> Seen:
        """Return some items and documents."""
        self._table.refresh()
        known = list(filter(is_storable, item_ids))
        wanted = [key for key in keys if all(map(is_storable, key))]
        found = Seen({}, {})
        for start in range(0, max(len(known), len(wanted)), BATCH):
            page = self._find(known[start : start + BATCH], wanted[start : start + BATCH])
            found = Seen({**found.items, **page.items}, {**found.documents, **page.documents})
        return Seen({i: found.items[i] for i in known if i in found.items}, found.documents)

    def _find(self, item_ids: Sequence[str], keys: Sequence[DocumentKey]) -> Seen:
        conditions = [f"sort = 'item' AND {among('name', item_ids)}"] if item_ids else []
        for kind, of_kind in groupby(sorted(keys), key=lambda key: key[0]):
            named = among("name", (key for _, key in of_kind))
            conditions.append(f"sort = 'document' AND under = {quoted(kind)} AND {named}")
        if not conditions:
            return Seen({}, {})
        found = list(self._table.newest(" OR ".join(f"({condition})" for condition in conditions)))
        items = {line.name: item_of(line) for line in found if line.sort == "item"}
        documents = {(line.under, line.name): document_of(line) for line in found if line.sort == "document"}
        return Seen(items, documents)

    def records(self, item_id: str) -> tuple[Record, ...]:
        """Return the records of an item, in order of sequence.

        Raises:
            ManifestCorrupt: Somebody has edited one of them so that it can't be read.
        """
        if not is_storable(item_id):
            return ()
        self._table.refresh()
        lines = self._table.newest(f"sort = 'record' AND name = {quoted(item_id)}", order="number")
        found = [record_of(line) for line in lines]
        for entry in found:
            if isinstance(entry, Damage):
                raise ManifestCorrupt(f"{item_id}: {entry.problem}", details={"item_id": item_id})
        return tuple(entry for entry in found if isinstance(entry, Record))

    def select(self, query: Query) -> Iterator[Item]:
        """Yield the items that the query asks for, by item id, without holding all of them in memory."""
        if not is_storable(query.prefix):
            return
        self._table.refresh()
        having = [among("state", query.states)] if query.states else []
        if query.verdicts:
            # A verdict is the last of a list; quotes within names are escaped.
            having.append(" OR ".join(f"verdicts LIKE '%\"{verdict}\"]%'" for verdict in query.verdicts))
        found = self._table.newest(
            f"sort = 'item' AND {_starts_with(query.prefix)}",
            having=" AND ".join(f"({condition})" for condition in having) or "true",
        )
        yield from (item for item in map(item_of, found) if query.matches(item))

    def counts(self) -> Mapping[tuple[Application, Verdict], int]:
        """Return how many items each application has in each verdict."""
        self._table.refresh()
        counted: Counter[tuple[Application, Verdict]] = Counter()
        for verdicts, number in self._table.rows("verdicts, count(*)", "sort = 'item'", group="verdicts"):
            for name, instance_id, verdict in json.loads(verdicts):
                counted[Application.named(name, instance_id), Verdict(verdict)] += number
        return dict(counted)

    def document(self, kind: str, key: str) -> Document | None:
        """Return one document, or None."""
        return self.look_up([], [(kind, key)]).documents.get((kind, key))

    def documents(
        self, kind: str, *, prefix: str = "", is_newest_first: bool = False, limit: int | None = None
    ) -> Iterator[Document]:
        """Yield documents of a kind whose key starts with `prefix`, by key or from the last key backwards."""
        self._table.refresh()
        lines = self._table.newest(
            f"sort = 'document' AND under = {quoted(kind)} AND {_starts_with(prefix)}",
            order="name DESC" if is_newest_first else "name",
            limit=limit,
        )
        return map(document_of, lines)

    def scan(self) -> Iterator[Record | Damage]:
        """Yield every record, by item id and sequence; damage in place of unreadable ones."""
        self._table.refresh()
        return map(record_of, self._table.newest("sort = 'record'", order="name, number"))

    def rebuild(self) -> None:
        """Make what `read`, `select` and `counts` answer from follow from the records alone again."""
        for _ in self._table.attempts():
            at = self._table.refresh()
            records = self.scan()
            folds = (
                replay(item_id, entries)[0] for item_id, entries in groupby(records, lambda r: r.item_id)
            )
            kept = self._table.newest("sort <> 'item'", order="sort, under, name, number")
            try:
                return self._table.replace(chain(kept, (item_line(item, at) for item in folds)), at)
            except Overtaken:
                continue
        return None

    def close(self) -> None:
        """Do nothing: there is no connection to let go of."""


def _place(settings: Mapping[str, Any]) -> str:
    """Return the location that settings name; a folder of this machine as a whole path."""
    location = str(settings.get("location") or "")
    if not location:
        raise SpecError.of(
            "the manifest in Delta has no location",
            remedy="Set `manifest: {location: …}` to a folder, or to a place in object storage.",
        )
    if "://" in location:
        return location
    folder = Path(location).absolute()
    if file := next((place for place in (folder, *folder.parents) if place.is_file()), None):
        raise SpecError.of(
            f"{file} is a file, and the manifest in Delta needs a folder",
            remedy="Set `manifest: {location: …}` to another place.",
        )
    return str(folder)


def _attempt(batch: Batch, write: Write, taken: set[str]) -> Outcome:
    """Return what a write came to in a batch; one whose record's id is taken is not taken in."""
    before = len(batch.records)
    kept = dict(batch.items), dict(batch.documents)
    try:
        written = batch.add(write)
    except LakewrightError as error:
        return error
    added = batch.records[before:]
    ids = {record.record_id for record in added}
    if len(ids) == len(added) and not ids & taken:
        taken |= ids
        return written
    del batch.records[before:]
    batch.items, batch.documents = kept
    return IllegalTransition("a record with one of these ids is there already; nothing was written")


def _layout(version: int, at: int) -> Line:
    return Line("schema", "", "", version, at, None, None, "{}")


def _starts_with(prefix: str) -> str:
    return f"name >= {quoted(prefix)} AND starts_with(name, {quoted(prefix)})" if prefix else "true"
