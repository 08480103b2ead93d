"""The manifest in a SQL database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, Select, select

from lakewright.errors import IllegalTransition, LakewrightError, ManifestCorrupt
from lakewright.manifest.batch import Batch, document_keys, is_storable, item_ids
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.record import Application, Record
from lakewright.manifest.store import Damage, Document, DocumentKey, Query, Seen, Write, Written
from lakewright.stores.sql import tables
from lakewright.stores.sql.backend import Backend, Collision
from lakewright.stores.sql.rows import application_of, document_of
from lakewright.stores.sql.schema import documents, is_current, migrate, tallies
from lakewright.stores.sql.select import candidates, paged

__all__ = ["SqlStore"]

BATCH = 500
"""Writes of one transaction, and items of one question."""

Outcome = Written | LakewrightError

T = TypeVar("T")


class SqlStore:
    """A store over any database that a `Backend` describes."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        try:
            if not backend.ask(self._is_ready, patience=0):
                backend.transact(self._migrate, patience=0)
        except LakewrightError:
            self.close()
            raise

    def _is_ready(self, connection: Connection) -> bool:
        self._backend.check(connection)
        return is_current(connection)

    def _migrate(self, connection: Connection) -> None:
        self._backend.lock_schema(connection)
        migrate(connection, self._backend.where)

    def now(self) -> datetime:
        """Return the time by the store's own clock, in UTC."""
        return (
            self._backend.ask(self._backend.now) if self._backend.has_own_clock else self._backend.now(None)
        )

    def write(self, write: Write) -> Written:
        """Put down one write, durably."""
        outcome = self._write_one(write)
        if isinstance(outcome, LakewrightError):
            raise outcome
        return outcome

    def write_many(self, writes: Iterable[Write]) -> Iterator[Written | LakewrightError]:
        """Put down many independent writes in few round trips, and yield what became of each."""
        iterator = iter(writes)
        while batch := list(islice(iterator, BATCH)):
            yield from self._write_batch(batch)

    def _write_batch(self, writes: Sequence[Write]) -> Sequence[Outcome]:
        for _ in range(2):
            try:
                return self._put_down(writes)
            except Collision:
                continue  # others inserted one of the keys: now that it is there, it is seen and refused
        return [self._write_one(write) for write in writes]

    def _write_one(self, write: Write) -> Outcome:
        for _ in range(2):
            try:
                return self._put_down([write])[0]
            except Collision:
                continue
        return IllegalTransition("a record with one of these ids is there already; nothing was written")

    def _put_down(self, writes: Sequence[Write]) -> list[Outcome]:
        def work(connection: Connection) -> list[Outcome]:
            tables.settle(connection)
            before = tables.load_items(connection, item_ids(writes), is_locking=True)
            kept = tables.load_documents(connection, document_keys(writes), is_locking=True)
            batch = Batch(items=before, documents=dict(kept), now=self._backend.now(connection))
            outcomes = [_attempt(batch, write) for write in writes]
            tables.save_items(connection, before, batch.items.values())
            tables.save_records(connection, batch.records)
            tables.save_documents(connection, kept, batch.documents)
            tables.save_verdicts(connection, [(before.get(i.item_id), i) for i in batch.items.values()])
            return outcomes

        return self._backend.transact(work)

    def read(self, item_ids: Sequence[str]) -> Mapping[str, Item]:
        """Return the folds of these items; an item without records is left out."""
        found: dict[str, Item] = {}
        wanted = filter(is_storable, item_ids)
        while page := list(islice(wanted, BATCH)):
            found |= self._ask_settled(partial(tables.load_items, item_ids=page))
        return found

    def look_up(self, item_ids: Sequence[str], keys: Sequence[DocumentKey]) -> Seen:
        """Return some items and documents."""
        wanted = [key for key in keys if all(map(is_storable, key))]
        known = list(filter(is_storable, item_ids))

        def work(connection: Connection) -> Seen:
            return Seen(tables.load_items(connection, known), tables.load_documents(connection, wanted))

        return self._ask_settled(work)

    def records(self, item_id: str) -> tuple[Record, ...]:
        """Return the records of an item, in order of sequence.

        Raises:
            ManifestCorrupt: Somebody has edited one of them so that it can't be read.
        """
        if not is_storable(item_id):
            return ()
        found = self._backend.ask(partial(tables.load_records, item_id=item_id))
        for entry in found:
            if isinstance(entry, Damage):
                raise ManifestCorrupt(f"{item_id}: {entry.problem}", details={"item_id": item_id})
        return tuple(entry for entry in found if isinstance(entry, Record))

    def select(self, query: Query) -> Iterator[Item]:
        """Yield the items that the query asks for, by item id, without holding all of them in memory."""
        self._settle()
        found = candidates(query, self._ask)
        while page := list(islice(found, BATCH)):
            present = self.read(page)
            yield from (present[i] for i in page if i in present and query.matches(present[i]))

    def counts(self) -> Mapping[tuple[Application, Verdict], int]:
        """Return how many items each application has in each verdict."""
        self._settle()
        rows = self._ask(select(tallies).where(tallies.c.number > 0))
        return {(application_of(row.application), Verdict(row.verdict)): row.number for row in rows}

    def document(self, kind: str, key: str) -> Document | None:
        """Return one document, or None."""
        if not (is_storable(kind) and is_storable(key)):
            return None
        found = self._backend.ask(partial(tables.load_documents, keys=[(kind, key)]))
        return found.get((kind, key))

    def documents(
        self, kind: str, *, prefix: str = "", is_newest_first: bool = False, limit: int | None = None
    ) -> Iterator[Document]:
        """Yield documents of a kind whose key starts with `prefix`, by key or from the last key backwards."""
        of_kind = select(documents).where(documents.c.kind == kind)
        rows = paged(self._ask, of_kind, documents.c.key, prefix, is_descending=is_newest_first)
        return islice(map(document_of, rows), limit)

    def scan(self) -> Iterator[Record | Damage]:
        """Yield every record, by item id and sequence, flat in memory; damage in place of unreadable ones."""
        return tables.all_records(self._ask)

    def rebuild(self) -> None:
        """Make what `read`, `select` and `counts` answer from follow from the records alone again."""
        self._backend.transact(tables.rebuild)

    def close(self) -> None:
        """Let go of connections and files; a closed store isn't used again."""
        self._backend.close()

    def _ask(self, query: Select[Any]) -> Sequence[Row[Any]]:
        return self._backend.ask(lambda connection: connection.execute(query).all())

    def _ask_settled(self, work: Callable[[Connection], T]) -> T:
        """Return what `work` finds; items that somebody has edited, mostly none, are folded again first."""

        def if_settled(connection: Connection) -> tuple[T] | None:
            return (work(connection),) if tables.is_settled(connection) else None

        found = self._backend.ask(if_settled)
        if found is None:
            self._backend.transact(tables.settle)
            return self._backend.ask(work)
        return found[0]

    def _settle(self) -> None:
        self._ask_settled(lambda _: None)


def _attempt(batch: Batch, write: Write) -> Outcome:
    try:
        return batch.add(write)
    except LakewrightError as error:
        return error
