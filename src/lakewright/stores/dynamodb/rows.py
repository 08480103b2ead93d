"""Conversion between the manifest's values and the table's rows, in the form of DynamoDB's API."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from lakewright.errors import ManifestCorrupt, UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.item import Item
from lakewright.manifest.record import Record
from lakewright.manifest.standing import Standing, standing_of
from lakewright.manifest.store import Damage, Document
from lakewright.stores.dynamodb.keys import record_sort_key, shard, sort_key

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


def key_of(row: Row) -> Key:
    """Return the key of a row."""
    return row["pk"]["S"], row["sk"]["S"]


def item_key(item_id: str) -> Key:
    """Return the key of an item's row."""
    return f"item/{shard(item_id)}", sort_key(item_id)


def item_row(item: Item) -> Row:
    """Return the row of an item."""
    pk, sk = item_key(item.item_id)
    return {
        "pk": text(pk),
        "sk": text(sk),
        "item": text(item.item_id),
        "sequence": number(item.sequence),
        "fold": _blob(item.as_json()),
    }


def item_of(row: Row) -> Item:
    """Return the item in a row.

    Raises:
        ManifestCorrupt: The row was edited by hand so that it cannot be read.
    """
    try:
        return Item.from_json(_value(row["fold"]))
    except (AttributeError, KeyError, TypeError, ValueError, zlib.error) as error:
        item_id = row.get("item", {}).get("S", "?")
        raise ManifestCorrupt(
            f"the stored state of {item_id} can't be read: {error}",
            remedy=Phrase("Rebuild it from the records with ", Command("manifest", "fsck", "--repair"), "."),
            details={"item_id": item_id},
        ) from error


def record_key(item_id: str, sequence: int) -> Key:
    """Return the key of a record's row."""
    return f"record/{shard(item_id)}", record_sort_key(item_id, sequence)


def record_row(record: Record) -> Row:
    """Return the row of a record."""
    pk, sk = record_key(record.item_id, record.sequence)
    return {
        "pk": text(pk),
        "sk": text(sk),
        "item": text(record.item_id),
        "sequence": number(record.sequence),
        "state": text(record.state),
        "record": _blob(record.as_json()),
    }


def record_of(row: Row) -> Record | Damage:
    """Return the record in a row, or the damage if the row was edited so that it cannot be read."""
    item_id, sequence = row["item"]["S"], int(row["sequence"]["N"])
    try:
        record = Record.from_json(_value(row["record"]))
        if (record.item_id, record.sequence) != (item_id, sequence):
            raise ValueError(f"it is record {record.sequence} of {record.item_id}")
    except (AttributeError, KeyError, TypeError, ValueError, zlib.error) as error:
        return Damage(item_id, None, f"record {sequence} can't be read: {error}", sequence)
    return record


def marker_row(record: Record) -> Row:
    """Return the row that reserves a record's id, so that no other record gets it."""
    return {"pk": text(f"id/{record.record_id}"), "sk": text("="), "item": text(record.item_id)}


def listing_rows(item: Item) -> list[Row]:
    """Return the rows that list an item under its standing, by its id and by its arrival."""
    key, place, name = standing_of(item).key, sort_key(item.item_id), text(item.item_id)
    arrived = text(item.arrival)
    return [
        {"pk": text(f"standing/{key}"), "sk": text(place), "item": name},
        {"pk": text(f"arrival/{key}"), "sk": text(item.arrival + place), "item": name, "arrival": arrived},
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
    pk, sk = document_key(document.kind, document.key)
    return {
        "pk": text(pk),
        "sk": text(sk),
        "kind": text(document.kind),
        "key": text(document.key),
        "version": number(document.version),
        "value": _blob(dict(document.value)),
    }


def document_of(row: Row) -> Document:
    """Return the document in a row."""
    value: Mapping[str, Any] = _value(row["value"])
    return Document(row["kind"]["S"], row["key"]["S"], value, int(row["version"]["N"]))


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


def _blob(value: Any) -> dict[str, Any]:
    plain = json.dumps(value)
    return text(plain) if len(plain) < COMPRESSED_FROM else {"B": zlib.compress(plain.encode())}


def _value(stored: Mapping[str, Any]) -> Any:
    return json.loads(stored["S"] if "S" in stored else zlib.decompress(stored["B"]))
