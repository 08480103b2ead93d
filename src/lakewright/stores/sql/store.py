"""The store in a SQL database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, Select, select

from lakewright.errors import LakewrightError
from lakewright.manifest.batch import Batch, duplicate_record, is_storable, storable, touched
from lakewright.manifest.readiness import BY_ID, Arrivals, Choice, Reading
from lakewright.manifest.record import Record
from lakewright.manifest.standing import Standing
from lakewright.manifest.store import Damage, Document, DocumentKey, Outcome, Seen, Store, Write, batched
from lakewright.stores.sql import tables
from lakewright.stores.sql.database import Collision, Database
from lakewright.stores.sql.listing import candidates, first_and_last, paged, starts_with
from lakewright.stores.sql.schema import VERSION, documents, standings, version_of
from lakewright.stores.sql.tables import document_of

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
        return version_of(connection) == VERSION

    def _migrate(self, connection: Connection) -> None:
        self._database.lock_schema(connection)
        tables.migrate(connection, self._database.where)

    def now(self) -> datetime:
        return self._database.now()

    def look_up(self, item_ids: Sequence[str] = (), keys: Sequence[DocumentKey] = ()) -> Seen:
        subjects = storable(item_ids, keys)
        return self._database.read(lambda connection: tables.load(connection, *subjects))

    def write_many(self, writes: Iterable[Write]) -> Iterator[Outcome]:
        for batch in batched(writes):
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
        # Locked ones stay unchanged until the transaction ends.
        seen = tables.load(connection, *touched(writes), is_locking=self._database.locks_rows)
        batch = Batch(seen, now=self._database.now(connection))
        outcomes = [batch.attempt(write) for write in writes]
        tables.save_items(connection, seen.items, batch.items.values())
        tables.save_records(connection, batch.records)
        tables.save_documents(connection, seen.documents, batch.documents)
        tables.save_standings(connection, [(seen.items.get(i.item_id), i) for i in batch.items.values()])
        return outcomes

    def candidates(self, choice: Choice, reading: Reading = BY_ID) -> Iterator[str]:
        return candidates(choice, self._ask, reading) if is_storable(choice.prefix) else iter(())

    def standings(self) -> Mapping[Standing, int]:
        rows = self._ask(select(standings).where(standings.c.number > 0))
        return {Standing.parse(row.described): row.number for row in rows}

    def arrivals(self) -> Mapping[Standing, Arrivals]:
        rows: Sequence[Any] = self._ask(first_and_last())
        return {Standing.parse(row[0]): Arrivals((row[1], row[2]), (row[3], row[4])) for row in rows}

    def find_records(self, places: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Record | Damage]:
        wanted = set(places)
        found: dict[tuple[str, int], Record | Damage] = {}
        for page in batched(places):
            records = self._database.read(partial(tables.find_records, places=page))
            found |= {(record.item_id, record.sequence or 0): record for record in records}
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
        column = documents.c.key
        of_kind = select(documents).where(documents.c.kind == kind, starts_with(column, prefix))
        rows = paged(self._ask, of_kind, [column], is_descending=is_newest_first)
        return islice(map(document_of, rows), limit)

    def rebuild(self) -> None:
        self._database.write(tables.rebuild)

    def close(self) -> None:
        self._database.close()

    def _ask(self, query: Select[Any]) -> Sequence[Row[Any]]:
        return self._database.read(lambda connection: connection.execute(query).all())
