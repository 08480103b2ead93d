"""Reading all records, and recomputing everything that is derived from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby

from lakewright.manifest.record import Record
from lakewright.manifest.replay import replay
from lakewright.manifest.standing import Standing, standing_of
from lakewright.manifest.store import Damage
from lakewright.stores.dynamodb.keys import SHARDS, in_order, merged
from lakewright.stores.dynamodb.rows import (
    Key,
    Row,
    count_key,
    item_row,
    key_of,
    listing_rows,
    number,
    record_of,
    text,
)
from lakewright.stores.dynamodb.table import Table

__all__ = ["all_records", "list_by_standing", "rebuild"]


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


def list_by_standing(table: Table) -> None:
    """Replace the lists of the first layout, which were by application and verdict."""
    tallies = list(table.query("tally"))
    if not tallies:
        return
    for name in sorted({key_of(row)[1].rpartition("/")[0] for row in tallies}):
        table.delete_all(map(key_of, table.query(f"verdict/{name}")))
    rebuild(table)
    # They go last, because they name the lists: an interrupted migration is repeated.
    table.delete_all(map(key_of, tallies))


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
    for item_id, of_item in groupby(records, key=lambda record: record.item_id):
        item, _ = replay(item_id, of_item)
        yield item_row(item)
        yield from listing_rows(item)
        if (standing := standing_of(item)) is not None:
            counted[standing] += 1


def _count_row(standing: Standing, count: int) -> Row:
    pk, sk = count_key(standing, 0)
    return {"pk": text(pk), "sk": text(sk), "standing": text(standing.text), "number": number(count)}
