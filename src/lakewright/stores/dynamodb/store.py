"""The store in a DynamoDB table.

Each write is one transaction that succeeds only if nothing has changed since it was read. Reads are by key or
by one partition in order, never a scan of the table, and consistent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import datetime
from heapq import merge
from itertools import groupby, islice

from lakewright.errors import LakewrightError
from lakewright.manifest.batch import is_storable, storable
from lakewright.manifest.readiness import BY_ID, Choice, Place, Reading
from lakewright.manifest.record import Record
from lakewright.manifest.replay import folded
from lakewright.manifest.standing import Standing, standing_of
from lakewright.manifest.store import Damage, Document, DocumentKey, Outcome, Seen, Store, Write, chooses_all
from lakewright.stores.backend import check_version
from lakewright.stores.dynamodb.rows import (
    SHARDS,
    Key,
    Row,
    count_key,
    document_key,
    document_of,
    in_order,
    item_key,
    item_of,
    item_row,
    key_of,
    listing_rows,
    merged,
    number,
    record_key,
    record_of,
    record_sort_key,
    row_of,
    shard,
    sort_key_prefix,
    standing_in,
    text,
)
from lakewright.stores.dynamodb.table import Table
from lakewright.stores.dynamodb.writer import PENDING, Cache, Writer, finish, finish_all

VERSION = 3
"""The version of the layout. From an older one, the derived rows are computed again."""

VERSION_KEY: Key = ("schema", "=")
"""The key of the row that holds the version of the layout."""


def migrate(table: Table) -> None:
    """Create the table if it does not exist, and bring it to the current layout.

    The version is written last, so that an interrupted migration is repeated.

    Raises:
        NotInstalled: A newer version of Lakewright wrote the table.
    """
    present = _version(table)
    check_version(table.where, present, VERSION)
    if 0 < present < VERSION:
        finish_all(table)  # what a process has left of a large write is of the older layout
        rebuild(table)
    if present < VERSION:
        table.put_all([row_of(VERSION_KEY, version=number(VERSION))])


def _version(table: Table) -> int:
    asked = {"TableName": table.name, "Key": row_of(VERSION_KEY), "ConsistentRead": True}
    found = table.ask("get_item", unless="ResourceNotFoundException", **asked)
    if found is None:
        _create(table)
        return 0
    return int(found["Item"]["version"]["N"]) if "Item" in found else 0


def _create(table: Table) -> None:
    keys = {"pk": "HASH", "sk": "RANGE"}
    table.ask(
        "create_table",
        unless="ResourceInUseException",  # another process is creating it
        TableName=table.name,
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()],
        BillingMode="PAY_PER_REQUEST",
    )
    for _ in table.attempts():
        if table.ask("describe_table", TableName=table.name)["Table"]["TableStatus"] == "ACTIVE":
            return


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
        return self._load(*storable(item_ids, keys))

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

    def candidates(self, choice: Choice, reading: Reading = BY_ID) -> Iterator[str]:
        if not is_storable(choice.prefix):
            return iter(())
        prefix, is_descending = choice.prefix, reading.is_newest_first
        keys = [each.key for each in self.standings() if choice.admits(each)]
        if not reading.is_by_id:
            lists = [self._by_arrival(f"arrival/{key}", prefix, is_descending) for key in keys]
        else:
            shards, listed = (f"item/{part}" for part in range(SHARDS)), (f"standing/{key}" for key in keys)
            parts = shards if chooses_all(choice) else listed
            lists = [self._by_id(part, prefix, is_descending) for part in parts]
        places = filter(reading.includes, merge(*lists, reverse=reading.is_newest_first))
        return islice((item_id for (_, item_id), _ in groupby(places)), reading.limit)

    def _by_id(self, partition: str, prefix: str, is_descending: bool) -> Iterator[Place]:
        found = self._table.query(partition, sort_key_prefix(prefix), is_descending=is_descending)
        named = in_order(((row["item"]["S"], "") for row in found), is_descending=is_descending)
        return (("", item_id) for item_id, _ in named if item_id.startswith(prefix))

    def _by_arrival(self, partition: str, prefix: str, is_descending: bool) -> Iterator[Place]:
        rows = self._table.query(partition, is_descending=is_descending)
        for arrival, of_then in groupby(rows, key=lambda row: row["arrival"]["S"]):
            in_turn = in_order(((row["item"]["S"], None) for row in of_then), is_descending=is_descending)
            yield from ((arrival, item_id) for item_id, _ in in_turn if item_id.startswith(prefix))

    def standings(self) -> Mapping[Standing, int]:
        finish_all(self._table)
        counted: Counter[Standing] = Counter()
        for row in self._table.query("standings"):
            counted[standing_in(row)] += int(row["number"]["N"])
        return {standing: number for standing, number in counted.items() if number > 0}

    def find_records(self, places: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Record | Damage]:
        finish_all(self._table)
        keys = {record_key(*place): place for place in places}
        return {keys[key]: record_of(row) for key, row in self._table.get(keys).items()}

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


def all_records(table: Table) -> Iterator[Record | Damage]:
    """Yield every record by item id and sequence; damage takes the place of an unreadable one."""
    parts = [
        in_order((row["item"]["S"], row) for row in table.query(f"record/{part}")) for part in range(SHARDS)
    ]
    return (record_of(row) for _, row in merged(parts))


def rebuild(table: Table) -> None:
    """Recompute items, their lists and counts from the records; no one else may write meanwhile.

    If it is interrupted it must be repeated: until then some items are missing from the answers.
    """
    table.delete_all(_derived(table))
    counted: Counter[Standing] = Counter()
    table.put_all(_folded(all_records(table), counted))
    table.put_all(_count_row(standing, n) for standing, n in counted.items())


def _derived(table: Table) -> Iterator[Key]:
    """Yield the keys of all derived rows; the counts come last, because they name the lists."""
    counts = list(table.query("standings"))
    # A list under a standing that no item should have also has a count, which may be zero.
    for key in sorted({key_of(row)[1].rpartition("/")[0] for row in counts}):
        for kind in ("standing", "arrival"):
            yield from map(key_of, table.query(f"{kind}/{key}"))
    for part in range(SHARDS):
        yield from map(key_of, table.query(f"item/{part}"))
    yield from map(key_of, counts)


def _folded(records: Iterable[Record | Damage], counted: Counter[Standing]) -> Iterator[Row]:
    for item in folded(records):
        yield item_row(item)
        yield from listing_rows(item)
        counted[standing_of(item)] += 1


def _count_row(standing: Standing, count: int) -> Row:
    return row_of(count_key(standing, 0), standing=text(standing.text), number=number(count))
