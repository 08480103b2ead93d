"""The manifest in a table of DynamoDB.

Each write is one transaction, made only if everything is as it was seen. Reading is by key or by
one partition in order, never by a scan of the table, and always consistent but for the list of items by
state: that comes from a global index, which may lag behind for a moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import datetime
from itertools import groupby, islice
from typing import Any

from lakewright.errors import LakewrightError, ManifestCorrupt
from lakewright.manifest.batch import is_storable
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.record import Application, Record
from lakewright.manifest.store import Damage, Document, DocumentKey, Query, Seen, Write, Written
from lakewright.stores.dynamodb.keys import SHARDS, in_order, merged, place_of_record, place_prefix, shard
from lakewright.stores.dynamodb.large import PENDING, finish, finish_all
from lakewright.stores.dynamodb.memo import Memo
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
from lakewright.stores.dynamodb.writing import Writer

__all__ = ["DynamoDbStore"]

DEFAULT_TABLE = "lakewright-manifest"

PAGE = 100
"""Items read with one request."""


class DynamoDbStore:
    """A manifest in a table, which is made where there is none.

    Args:
        table: The table, which the store closes.
        clock: Gives the store's time, in UTC; by default the server's.
    """

    def __init__(self, table: Table, *, clock: Callable[[], datetime] | None = None) -> None:
        self._table = table
        self._clock = clock or self._table.clock.now
        self._memo = Memo()
        self._writer = Writer(self._table, self._clock, self._memo, self._load)
        try:
            migrate(self._table)
        except LakewrightError:
            self.close()
            raise

    @classmethod
    def open(cls, settings: Mapping[str, Any]) -> DynamoDbStore:
        """Return the store in the table that settings name."""
        return cls(_table(settings))

    @classmethod
    def look(cls, settings: Mapping[str, Any]) -> DynamoDbStore | datetime:
        """Return the store, or the server's time where there is no such table."""
        with ExitStack() as undo:
            table = undo.enter_context(closing(_table(settings)))
            if not table.is_there():
                return table.clock.now()
            undo.pop_all()
        return cls(table)

    def now(self) -> datetime:
        """Return the time by the store's own clock, in UTC."""
        return self._clock()

    def write(self, write: Write) -> Written:
        """Put down one write, durably."""
        return self._writer.write(write)

    def write_many(self, writes: Iterable[Write]) -> Iterator[Written | LakewrightError]:
        """Put down many independent writes in few round trips, and yield what became of each."""
        return self._writer.write_many(writes)

    def read(self, item_ids: Sequence[str]) -> Mapping[str, Item]:
        """Return the folds of these items; an item without records is left out."""
        return self.look_up(item_ids, []).items

    def look_up(self, item_ids: Sequence[str], keys: Sequence[DocumentKey]) -> Seen:
        """Return some items and documents in one round trip."""
        wanted = list(filter(is_storable, item_ids))
        named = [key for key in keys if all(map(is_storable, key))]
        return self._load(wanted, named)

    def _load(self, item_ids: Sequence[str], keys: Sequence[DocumentKey]) -> Seen:
        """Return items and documents as they are right now, and remember them."""
        wanted = [*map(item_key, item_ids), *(document_key(*key) for key in keys)]
        rows = self._table.get(wanted)
        if due := {row[PENDING]["S"] for row in rows.values() if PENDING in row}:
            for name in due:
                finish(self._table, name)
            rows = self._table.get(wanted)
        items = {i: item_of(row) for i in item_ids if (row := rows.get(item_key(i)))}
        documents = {k: document_of(row) for k in keys if (row := rows.get(document_key(*k)))}
        seen = Seen(items, documents)
        self._memo.note(item_ids, keys, seen)
        return seen

    def records(self, item_id: str) -> tuple[Record, ...]:
        """Return the records of an item, in order of sequence.

        Raises:
            ManifestCorrupt: Somebody has edited one of them so that it can't be read.
        """
        if not is_storable(item_id):
            return ()
        finish_all(self._table)
        rows = self._table.query(f"record/{shard(item_id)}", place_of_record(item_id))
        found = [record_of(row) for row in rows]
        for entry in found:
            if isinstance(entry, Damage):
                raise ManifestCorrupt(f"{item_id}: {entry.problem}", details={"item_id": item_id})
        return tuple(entry for entry in found if isinstance(entry, Record))

    def select(self, query: Query) -> Iterator[Item]:
        """Yield the items that the query asks for, by item id, without holding all of them in memory."""
        if not is_storable(query.prefix):
            return
        finish_all(self._table)
        found = self._candidates(query)
        while page := list(islice(found, PAGE)):
            present = self.read(page)
            yield from (present[i] for i in page if i in present and query.matches(present[i]))

    def _candidates(self, query: Query) -> Iterator[str]:
        """Yield ids of items, sorted, each once, among which are all that a query asks for."""
        prefix = place_prefix(query.prefix)
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
        """Return how many items each application has in each verdict."""
        finish_all(self._table)
        counted: Counter[tuple[Application, Verdict]] = Counter()
        for row in self._table.query("tally"):
            counted[application_of(row), Verdict(row["verdict"]["S"])] += int(row["number"]["N"])
        return {pair: number for pair, number in counted.items() if number > 0}

    def document(self, kind: str, key: str) -> Document | None:
        """Return one document, or None."""
        return self.look_up([], [(kind, key)]).documents.get((kind, key))

    def documents(
        self, kind: str, *, prefix: str = "", is_newest_first: bool = False, limit: int | None = None
    ) -> Iterator[Document]:
        """Yield documents of a kind whose key starts with `prefix`, by key or from the last key backwards."""
        rows = self._table.query(f"document/{kind}", place_prefix(prefix), is_descending=is_newest_first)
        found = in_order(((row["key"]["S"], row) for row in rows), is_descending=is_newest_first)
        return islice((document_of(row) for key, row in found if key.startswith(prefix)), limit)

    def scan(self) -> Iterator[Record | Damage]:
        """Yield every record, by item id and sequence, flat in memory; damage in place of unreadable ones."""
        finish_all(self._table)
        return all_records(self._table)

    def rebuild(self) -> None:
        """Make what `read`, `select` and `counts` answer from follow from the records alone again."""
        finish_all(self._table)
        rebuild(self._table)

    def close(self) -> None:
        """Let go of connections; a closed store isn't used again."""
        self._table.close()


def _table(settings: Mapping[str, Any]) -> Table:
    region, endpoint_url = (settings.get(name) for name in ("region", "endpoint_url"))
    return Table(str(settings.get("table", DEFAULT_TABLE)), region=region, endpoint_url=endpoint_url)
