"""The store in a SQL database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, Select, select

from lakewright.errors import LakewrightError
from lakewright.manifest.batch import Batch, document_keys, duplicate_record, is_storable, item_ids
from lakewright.manifest.item import Item
from lakewright.manifest.readiness import FORWARDS, Arrivals, Queue, Reading, belongs
from lakewright.manifest.record import Record
from lakewright.manifest.standing import Standing
from lakewright.manifest.store import Damage, Document, DocumentKey, Outcome, Query, Seen, Store, Write
from lakewright.stores.sql import tables
from lakewright.stores.sql.database import Collision, Database
from lakewright.stores.sql.listing import candidates, first_and_last, paged, queued
from lakewright.stores.sql.rows import document_of
from lakewright.stores.sql.schema import documents, is_current, migrate, standings

BATCH = 500
"""Writes of one transaction, and items of one query."""

T = TypeVar("T")


class SqlStore(Store):
    """A store in any database that a `Database` describes.

    Args:
        database: Its schema is created or migrated; the store closes it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        try:
            if not database.read(self._is_ready, patience=0):
                database.write(self._migrate, patience=0)
        except LakewrightError:
            self.close()
            raise

    def _is_ready(self, connection: Connection) -> bool:
        self._database.check(connection)
        return is_current(connection)

    def _migrate(self, connection: Connection) -> None:
        self._database.lock_schema(connection)
        migrate(connection, self._database.where)

    def now(self) -> datetime:
        database = self._database
        return database.read(database.now) if database.has_server_clock else database.now(None)

    def look_up(self, item_ids: Sequence[str] = (), keys: Sequence[DocumentKey] = ()) -> Seen:
        ids = list(filter(is_storable, item_ids))
        storable_keys = [key for key in keys if all(map(is_storable, key))]

        found = self._database.read(partial(tables.load_few, item_ids=ids, keys=storable_keys))
        # Only items can be out of date after an edit by hand; documents alone need no check for that.
        if found is not None and not (ids and found[0]):
            return Seen(*found[1:])

        def first_page(connection: Connection) -> Seen:
            return Seen(
                tables.load_items(connection, ids[:BATCH]), tables.load_documents(connection, storable_keys)
            )

        seen = self._read_current(first_page)
        items = dict(seen.items)
        for start in range(BATCH, len(ids), BATCH):
            items |= self._read_current(partial(tables.load_items, item_ids=ids[start : start + BATCH]))
        return Seen(items, seen.documents)

    def write_many(self, writes: Iterable[Write]) -> Iterator[Outcome]:
        remaining = iter(writes)
        while batch := list(islice(remaining, BATCH)):
            yield from self._write_batch(batch)

    def _write_batch(self, writes: Sequence[Write]) -> Sequence[Outcome]:
        for _ in range(2):
            try:
                return self._database.write(partial(self._write_in_transaction, writes=writes))
            except Collision:
                # Another process inserted one of the keys first; the second attempt sees it and refuses it.
                continue
        if len(writes) == 1:
            return [duplicate_record()]
        return [outcome for write in writes for outcome in self._write_batch([write])]

    def _write_in_transaction(self, connection: Connection, writes: Sequence[Write]) -> list[Outcome]:
        items, present = self._load_to_change(connection, item_ids(writes), document_keys(writes))
        batch = Batch(items=items, documents=dict(present), now=self._database.now(connection))
        outcomes = [batch.attempt(write) for write in writes]
        # Items go first: the triggers take a record without its item for an edit by hand.
        tables.save_items(connection, items, batch.items.values())
        tables.save_records(connection, batch.records)
        tables.save_documents(connection, present, batch.documents)
        tables.save_standings(connection, [(items.get(i.item_id), i) for i in batch.items.values()])
        return outcomes

    def _load_to_change(
        self, connection: Connection, ids: Sequence[str], keys: Sequence[DocumentKey]
    ) -> tuple[dict[str, Item], dict[DocumentKey, Document]]:
        """Return items and documents, which stay unchanged until the transaction ends."""
        if not self._database.locks_rows:
            found = tables.load_few(connection, ids, keys)
            if found is not None and not found[0]:
                return found[1:]
        tables.refold_edited(connection)
        return (
            tables.load_items(connection, ids, is_locking=True),
            tables.load_documents(connection, keys, is_locking=True),
        )

    def select(self, query: Query) -> Iterator[Item]:
        found = self.candidates(query)
        while page := list(islice(found, BATCH)):
            present = self.read(page)
            yield from (present[i] for i in page if i in present and query.matches(present[i]))

    def candidates(self, query: Query) -> Iterator[str]:
        self._refold_edited()
        return candidates(query, self._ask)

    def queue(self, queue: Queue, reading: Reading = FORWARDS) -> Iterator[Item]:
        self._refold_edited()
        found = queued(queue, self._ask, reading)
        while page := list(islice(found, BATCH)):
            present = self.read(page)
            yield from (present[i] for i in page if i in present and belongs(present[i], queue))

    def standings(self) -> Mapping[Standing, int]:
        self._refold_edited()
        rows = self._ask(select(standings).where(standings.c.number > 0))
        return {Standing.parse(row.described): row.number for row in rows}

    def arrivals(self) -> Mapping[Standing, Arrivals]:
        self._refold_edited()
        rows: Sequence[Any] = self._ask(first_and_last())
        return {Standing.parse(row[0]): Arrivals((row[1], row[2]), (row[3], row[4])) for row in rows}

    def find_records(self, places: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Record | Damage]:
        wanted = set(places)
        found: dict[tuple[str, int], Record | Damage] = {}
        for start in range(0, len(places), BATCH):
            page = partial(tables.find_records, places=places[start : start + BATCH])
            found |= {(record.item_id, record.sequence or 0): record for record in self._database.read(page)}
        return {place: found[place] for place in found.keys() & wanted}

    def history(self, item_id: str | None = None) -> Iterator[Record | Damage]:
        if item_id is None:
            return tables.all_records(self._ask)
        if not is_storable(item_id):
            return iter(())
        return iter(self._database.read(partial(tables.load_records, item_id=item_id)))

    def documents(
        self, kind: str, *, prefix: str = "", is_newest_first: bool = False, limit: int | None = None
    ) -> Iterator[Document]:
        of_kind = select(documents).where(documents.c.kind == kind)
        rows = paged(self._ask, of_kind, documents.c.key, prefix, is_descending=is_newest_first)
        return islice(map(document_of, rows), limit)

    def rebuild(self) -> None:
        self._database.write(tables.rebuild)

    def close(self) -> None:
        self._database.close()

    def _ask(self, query: Select[Any]) -> Sequence[Row[Any]]:
        return self._database.read(lambda connection: connection.execute(query).all())

    def _read_current(self, work: Callable[[Connection], T]) -> T:
        """Return the result of `work`, after items whose records were edited by hand are folded again."""

        def unless_edited(connection: Connection) -> tuple[T] | None:
            return None if tables.has_edited(connection) else (work(connection),)

        found = self._database.read(unless_edited)
        if found is None:
            self._database.write(tables.refold_edited)
            return self._database.read(work)
        return found[0]

    def _refold_edited(self) -> None:
        self._read_current(lambda _: None)
