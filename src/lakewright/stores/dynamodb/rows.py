"""Conversion between the manifest's values and the table's rows, as DynamoDB's API has them, and their keys.

Keys hold at most 1,024 bytes, although ids may have 2,000. They sort as their texts do, except for texts that
share their first 890 bytes.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from itertools import groupby
from typing import Any, TypeVar

from lakewright.errors import UsageError
from lakewright.manifest.item import Item
from lakewright.manifest.plain_values import json_text
from lakewright.manifest.record import Record
from lakewright.manifest.replay import stored_item, stored_record
from lakewright.manifest.standing import Standing, standing_of
from lakewright.manifest.store import Damage, Document

Row = Mapping[str, Any]
"""Attribute to typed value: `{"pk": {"S": "…"}}`."""

Key = tuple[str, str]
"""Partition key and sort key of a row."""

LARGEST_ROW = 400_000
"""Maximum bytes of a row; DynamoDB allows 409,600, including its own overhead."""

COMPRESSED_FROM = 4_096
"""A value of this many characters or more is stored compressed."""


def text(value: str) -> dict[str, str]:
    """Return a text as a typed value."""
    return {"S": value}


def number(value: int) -> dict[str, str]:
    """Return a number as a typed value."""
    return {"N": str(value)}


def row_of(key: Key, /, **attributes: Mapping[str, Any]) -> Row:
    """Return a row of typed values."""
    return {"pk": text(key[0]), "sk": text(key[1]), **attributes}


def key_of(row: Row) -> Key:
    """Return the key of a row."""
    return row["pk"]["S"], row["sk"]["S"]


def item_key(item_id: str) -> Key:
    """Return the key of an item's row."""
    return f"item/{shard(item_id)}", sort_key(item_id)


def item_row(item: Item) -> Row:
    """Return the row of an item."""
    return row_of(
        item_key(item.item_id),
        item=text(item.item_id),
        sequence=number(item.sequence),
        fold=_blob(item.as_json()),
    )


def item_of(row: Row) -> Item:
    """Return the item in a row; see `stored_item`."""
    return stored_item(row.get("item", {}).get("S", "?"), lambda: _value(row["fold"]))


def record_key(item_id: str, sequence: int) -> Key:
    """Return the key of a record's row."""
    return f"record/{shard(item_id)}", record_sort_key(item_id, sequence)


def record_row(record: Record) -> Row:
    """Return the row of a record."""
    return row_of(
        record_key(record.item_id, record.sequence),
        item=text(record.item_id),
        sequence=number(record.sequence),
        state=text(record.state),
        record=_blob(record.as_json()),
    )


def record_of(row: Row) -> Record | Damage:
    """Return the record in a row; see `stored_record`."""
    return stored_record(row["item"]["S"], int(row["sequence"]["N"]), lambda: _value(row["record"]))


def marker_row(record: Record) -> Row:
    """Return the row that reserves a record's id, so that no other record gets it."""
    return row_of((f"id/{record.record_id}", "="), item=text(record.item_id))


def listing_rows(item: Item) -> list[Row]:
    """Return the rows that list an item under its standing, by its id and by its arrival."""
    key, place, name = standing_of(item).key, sort_key(item.item_id), text(item.item_id)
    return [
        row_of((f"standing/{key}", place), item=name),
        row_of((f"arrival/{key}", item.arrival + place), item=name, arrival=text(item.arrival)),
    ]


def count_key(standing: Standing, slot: int) -> Key:
    """Return the key of one part of the count of items with a standing."""
    return "standings", f"{standing.key}/{slot}"


def standing_in(row: Row) -> Standing:
    """Return the standing of a count's row."""
    return Standing.parse(row["standing"]["S"])


def document_key(kind: str, key: str) -> Key:
    """Return the key of a document's row."""
    return f"document/{kind}", sort_key(key)


def document_row(document: Document) -> Row:
    """Return the row of a document."""
    return row_of(
        document_key(document.kind, document.key),
        kind=text(document.kind),
        key=text(document.key),
        version=number(document.version),
        value=_blob(document.value),
    )


def document_of(row: Row) -> Document:
    """Return the document in a row."""
    return Document(row["kind"]["S"], row["key"]["S"], _value(row["value"]), int(row["version"]["N"]))


def checked(row: Row) -> Row:
    """Return the row if DynamoDB can store it.

    Raises:
        UsageError: The row is too large.
    """
    size = size_of(row)
    if size > LARGEST_ROW:
        subject = row.get("item") or row.get("key") or row["pk"]
        raise UsageError(
            f"the row of {subject['S'][:80]} has {size} bytes compressed; "
            f"DynamoDB stores at most {LARGEST_ROW}",
            remedy="Record less data with it, or choose another back end for the manifest.",
        )
    return row


def size_of(row: Row) -> int:
    """Return the approximate size of a row in bytes."""
    return sum(len(name) + _length(next(iter(value.values()))) for name, value in row.items())


def _length(value: str | bytes) -> int:
    return len(value if isinstance(value, bytes) else value.encode())


def _blob(value: Mapping[str, Any]) -> dict[str, Any]:
    plain = json_text(value)
    return text(plain) if len(plain) < COMPRESSED_FROM else {"B": zlib.compress(plain.encode())}


def _value(stored: Mapping[str, Any]) -> Any:
    try:
        return json.loads(stored["S"] if "S" in stored else zlib.decompress(stored["B"]))
    except zlib.error as error:
        raise ValueError(error) from error


SHARDS = 8
"""Partitions that items and their records are spread over; DynamoDB limits the rate of each one."""

LONGEST = 900
"""Maximum bytes of a text that its key contains unchanged."""

STEM = 890
"""Leading bytes by which keys always sort; fewer than `LONGEST`, as a character has up to four bytes."""

SEPARATOR = "\x01\x01"
"""Stands between item id and sequence in a record's key; sorts before any continuation of an item id."""

T = TypeVar("T")


def shard(item_id: str) -> int:
    """Return the partition number of an item and its records."""
    return hashlib.sha256(item_id.encode()).digest()[0] % SHARDS


def sort_key(text: str) -> str:
    """Return the sort key of a text, which is never empty and differs for different texts.

    A text that is too long for a key is cut, and a digest of it is added.
    """
    escaped = _escaped(text)
    if len(escaped.encode()) <= LONGEST:
        return f"={escaped}"
    return f"={_cut(escaped, LONGEST)}\x01{_digest(escaped)}"


def record_sort_key(item_id: str, sequence: int | None = None) -> str:
    """Return the sort key of a record, or the common prefix of an item's records without a sequence."""
    return f"{sort_key(item_id)}{SEPARATOR}{'' if sequence is None else format(sequence, '010d')}"


def sort_key_prefix(prefix: str) -> str:
    """Return the common prefix of the sort keys of texts with a prefix; a few other keys may share it."""
    return f"={_cut(_escaped(prefix), STEM)}"


def in_order(rows: Iterable[tuple[str, T]], *, is_descending: bool = False) -> Iterator[tuple[str, T]]:
    """Yield pairs of a text and a value, sorted by sort key, in the order of their texts."""
    for _, group in groupby(rows, key=lambda row: _cut(_escaped(row[0]), STEM)):
        yield from sorted(group, key=lambda row: row[0], reverse=is_descending)


def merged(sources: Iterable[Iterable[tuple[str, T]]]) -> Iterator[tuple[str, T]]:
    """Merge sources of pairs that are each sorted by text."""
    return merge(*sources, key=lambda row: row[0])


def _escaped(text: str) -> str:
    """Return a text that does not contain the separator; texts sort as before."""
    return text.replace("\x01", "\x01\x02")


def _cut(text: str, longest: int) -> str:
    return text.encode()[:longest].decode(errors="ignore")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
