"""The store in a DynamoDB table.

Each write is one transaction that succeeds only if nothing has changed since it was read. Reads are by key or
by one partition in order, never a scan of the table, and consistent, except for the list of items by state:
it comes from a global index, which may lag behind for a moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import datetime
from itertools import groupby, islice

from lakewright.errors import LakewrightError
from lakewright.manifest.batch import is_storable
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.record import Application, Record
from lakewright.manifest.store import Damage, Document, DocumentKey, Outcome, Query, Seen, Store, Write
from lakewright.stores.dynamodb.cache import Cache
from lakewright.stores.dynamodb.keys import SHARDS, in_order, merged, record_sort_key, shard, sort_key_prefix
from lakewright.stores.dynamodb.large_write import PENDING, finish, finish_all
from lakewright.stores.dynamodb.rebuild import all_records, rebuild
from lakewright.stores.dynamodb.rows import (
    application_of,
    document_key,
    document_of,
    item_key,
    item_of,
    record_of,
    verdict_row,
)
from lakewright.stores.dynamodb.schema import migrate
from lakewright.stores.dynamodb.table import BY_STATE, Table
from lakewright.stores.dynamodb.writer import Writer

__all__ = ["DynamoDbStore"]

PAGE = 100
"""Items read with one request."""


class DynamoDbStore(Store):
    """A manifest in a DynamoDB table, which is created if it does not exist.

    Args:
        table: The table; the store closes it.
        clock: Returns the store's time, in UTC; by default the server's.
    """

    def __init__(self, table: Table, *, clock: Callable[[], datetime] | None = None) -> None:
        self._table = table
        self._clock = clock or self._table.clock.now
        self._cache = Cache()
        self._writer = Writer(self._table, self._clock, self._cache, self._load)
        try:
            migrate(self._table)
        except LakewrightError:
            self.close()
            raise

    @classmethod
    def open(cls, table: str, *, region: str | None = None, endpoint_url: str | None = None) -> Store:
        """Return the store in a table, which is created if it does not exist."""
        return cls(Table(table, region=region, endpoint_url=endpoint_url))

    @classmethod
    def open_existing(cls, name: str, *, region: str | None, endpoint_url: str | None) -> Store | datetime:
        """Return the store, or the server's time if there is no such table."""
        with ExitStack() as undo:
            table = undo.enter_context(closing(Table(name, region=region, endpoint_url=endpoint_url)))
            if not table.exists():
                return table.clock.now()
            undo.pop_all()
        return cls(table)

    def now(self) -> datetime:
        return self._clock()

    def look_up(self, item_ids: Sequence[str] = (), keys: Sequence[DocumentKey] = ()) -> Seen:
        wanted = list(filter(is_storable, item_ids))
        named = [key for key in keys if all(map(is_storable, key))]
        return self._load(wanted, named)

    def _load(self, item_ids: Sequence[str], keys: Sequence[DocumentKey]) -> Seen:
        """Return the current items and documents, and cache them for the write that usually follows."""
        wanted = [*map(item_key, item_ids), *(document_key(*key) for key in keys)]
        rows = self._table.get(wanted)
        if due := {row[PENDING]["S"] for row in rows.values() if PENDING in row}:
            for name in due:
                finish(self._table, name)
            rows = self._table.get(wanted)
        items = {i: item_of(row) for i in item_ids if (row := rows.get(item_key(i)))}
        documents = {k: document_of(row) for k in keys if (row := rows.get(document_key(*k)))}
        seen = Seen(items, documents)
        self._cache.store(item_ids, keys, seen)
        return seen

    def write_many(self, writes: Iterable[Write]) -> Iterator[Outcome]:
        return self._writer.write_many(writes)

    def select(self, query: Query) -> Iterator[Item]:
        if not is_storable(query.prefix):
            return
        finish_all(self._table)
        found = self._candidates(query)
        while page := list(islice(found, PAGE)):
            present = self.read(page)
            yield from (present[i] for i in page if i in present and query.matches(present[i]))

    def _candidates(self, query: Query) -> Iterator[str]:
        """Yield item ids, sorted and distinct, that include every item the query asks for."""
        prefix = sort_key_prefix(query.prefix)
        if query.application is not None or query.verdicts:
            sources = [
                self._table.query(verdict_row(application, verdict, "")["pk"]["S"], prefix)
                for application, verdict in self.counts()
                if query.concerns(application, verdict)
            ]
        elif query.states:
            sources = [
                self._table.query(f"{state}/{part}", prefix, index=BY_STATE)
                for state in query.states
                for part in range(SHARDS)
            ]
        else:
            sources = [self._table.query(f"item/{part}", prefix) for part in range(SHARDS)]
        named = (in_order((row["item"]["S"], None) for row in source) for source in sources)
        return (item_id for item_id, _ in groupby(item_id for item_id, _ in merged(named)))

    def counts(self) -> Mapping[tuple[Application, Verdict], int]:
        finish_all(self._table)
        counted: Counter[tuple[Application, Verdict]] = Counter()
        for row in self._table.query("tally"):
            counted[application_of(row), Verdict(row["verdict"]["S"])] += int(row["number"]["N"])
        return {pair: number for pair, number in counted.items() if number > 0}

    def history(self, item_id: str | None = None) -> Iterator[Record | Damage]:
        if item_id is not None and not is_storable(item_id):
            return iter(())
        finish_all(self._table)
        if item_id is None:
            return all_records(self._table)
        return map(record_of, self._table.query(f"record/{shard(item_id)}", record_sort_key(item_id)))

    def documents(
        self, kind: str, *, prefix: str = "", is_newest_first: bool = False, limit: int | None = None
    ) -> Iterator[Document]:
        rows = self._table.query(f"document/{kind}", sort_key_prefix(prefix), is_descending=is_newest_first)
        found = in_order(((row["key"]["S"], row) for row in rows), is_descending=is_newest_first)
        return islice((document_of(row) for key, row in found if key.startswith(prefix)), limit)

    def rebuild(self) -> None:
        finish_all(self._table)
        rebuild(self._table)

    def close(self) -> None:
        self._table.close()
