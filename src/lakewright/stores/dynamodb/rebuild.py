"""Reading all records, and recomputing everything that is derived from them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby

from lakewright.manifest.item import Verdict
from lakewright.manifest.record import Application, Record
from lakewright.manifest.replay import replay
from lakewright.manifest.store import Damage
from lakewright.stores.dynamodb.keys import SHARDS, in_order, merged
from lakewright.stores.dynamodb.rows import (
    Key,
    Row,
    item_row,
    key_of,
    number,
    record_of,
    tally_key,
    text,
    verdict_row,
    verdicts_of,
)
from lakewright.stores.dynamodb.table import Table

__all__ = ["all_records", "rebuild"]


def all_records(table: Table) -> Iterator[Record | Damage]:
    """Yield every record by item id and sequence; damage takes the place of an unreadable one."""
    parts = [
        in_order((row["item"]["S"], row) for row in table.query(f"record/{part}")) for part in range(SHARDS)
    ]
    return (record_of(row) for _, row in merged(parts))


def rebuild(table: Table) -> None:
    """Recompute items, verdicts and counts from the records; no one else may write meanwhile.

    If it is interrupted it must be repeated: until then some items are missing from the answers.
    """
    table.delete_all(_derived(table))
    counted: Counter[tuple[Application, Verdict]] = Counter()
    table.put_all(_folded(all_records(table), counted))
    table.put_all(_tally_row(application, verdict, n) for (application, verdict), n in counted.items())


def _derived(table: Table) -> Iterator[Key]:
    """Yield the keys of all derived rows; the counts come last, because they name the lists by verdict."""
    tallies = list(table.query("tally"))
    # A list under a verdict that no item should have also has a count, which may be zero.
    lists = {key_of(row)[1].rpartition("/")[0] for row in tallies}
    for name in sorted(lists):
        yield from map(key_of, table.query(f"verdict/{name}"))
    for part in range(SHARDS):
        yield from map(key_of, table.query(f"item/{part}"))
    yield from map(key_of, tallies)


def _folded(
    records: Iterable[Record | Damage], counted: Counter[tuple[Application, Verdict]]
) -> Iterator[Row]:
    for item_id, of_item in groupby(records, key=lambda record: record.item_id):
        item, _ = replay(item_id, of_item)
        yield item_row(item)
        for application, verdict in verdicts_of(item):
            counted[application, verdict] += 1
            yield verdict_row(application, verdict, item_id)


def _tally_row(application: Application, verdict: Verdict, count: int) -> Row:
    pk, sk = tally_key(application, verdict, 0)
    return {
        "pk": text(pk),
        "sk": text(sk),
        "application": text(json.dumps(application.key)),
        "verdict": text(verdict),
        "number": number(count),
    }
