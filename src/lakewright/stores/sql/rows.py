"""Conversion between the manifest's values and table rows."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sqlalchemy import Row

from lakewright.manifest.item import Item
from lakewright.manifest.plain_values import json_text
from lakewright.manifest.record import (
    Agent,
    Application,
    Author,
    Record,
    State,
    format_instant,
    parse_instant,
)
from lakewright.manifest.replay import stored_item
from lakewright.manifest.standing import standing_of
from lakewright.manifest.store import Damage, Document


def record_row(record: Record) -> dict[str, Any]:
    """Return the row of a record."""
    return {
        "item_id": record.item_id,
        "sequence": record.sequence,
        "record_id": record.record_id,
        "state": record.state.value,
        "application": record.application.name,
        "application_version": record.application.agent.version,
        "instance_id": record.application.instance_id,
        "author": record.author.agent.name,
        "author_version": record.author.agent.version,
        "manifest_version": record.author.manifest_version,
        "run_id": record.run_id,
        "previous_record_id": record.previous_record_id,
        "timestamp": format_instant(record.timestamp),
        "payload": None if record.payload is None else json_text(record.payload),
    }


def record_of(row: Row[Any]) -> Record | Damage:
    """Return the record in a row, or the damage if the row was edited so that it cannot be read."""
    try:
        return Record(
            record_id=row.record_id,
            item_id=row.item_id,
            state=State(row.state),
            application=Application(Agent(row.application, row.application_version), row.instance_id),
            author=Author(Agent(row.author, row.author_version), row.manifest_version),
            run_id=row.run_id,
            previous_record_id=row.previous_record_id,
            payload=_payload(row.payload),
            timestamp=parse_instant(row.timestamp),
            sequence=row.sequence,
        )
    except (TypeError, ValueError) as error:
        return Damage(
            row.item_id, row.record_id, f"record {row.record_id} can't be read: {error}", row.sequence
        )


def _payload(stored: str | None) -> Mapping[str, Any] | None:
    payload = None if stored is None else json.loads(stored)
    if payload is not None and not isinstance(payload, dict):
        raise ValueError("its payload isn't an object")
    return payload


def item_row(item: Item) -> dict[str, Any]:
    """Return the row of an item."""
    fold = json.dumps(item.as_json())
    _remember(fold, item)
    return {
        "item_id": item.item_id,
        "fold": fold,
        "standing": standing_of(item).key,
        "arrival": item.arrival,
    }


def item_of(item_id: str, fold: str) -> Item:
    """Return the item whose fold a row holds; see `stored_item`."""
    item = _FOLDS.get(fold)
    if item is None:
        item = stored_item(item_id, lambda: json.loads(fold))
        _remember(fold, item)
    return item


MOST_FOLDS = 512
"""Items that are kept with their folds: taking and ending a lock reads the same item three times."""

_FOLDS: OrderedDict[str, Item] = OrderedDict()


def _remember(fold: str, item: Item) -> None:
    _FOLDS[fold] = item
    with suppress(KeyError):  # another thread was faster
        while len(_FOLDS) > MOST_FOLDS:
            _FOLDS.popitem(last=False)


def document_row(document: Document) -> dict[str, Any]:
    """Return the row of a document."""
    return {
        "kind": document.kind,
        "key": document.key,
        "version": document.version,
        "value": json_text(document.value),
    }


def document_of(row: Row[Any]) -> Document:
    """Return the document in a row."""
    return Document(row.kind, row.key, json.loads(row.value), row.version)
