"""What an application has done, derived from its records alone.

Source: `processing-manifest.md`, "Use cases" (pipeline bus).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from lakewright.manifest.item import Item
from lakewright.manifest.payload import payload_content
from lakewright.manifest.plain_values import document_of
from lakewright.manifest.readiness import BY_ARRIVAL, Done
from lakewright.manifest.record import Application, Record
from lakewright.manifest.store import Store

PAGE = 500
"""Items whose payloads are read together."""


@dataclass(frozen=True, slots=True)
class ProcessedItem:
    """What an application recorded when it had processed an item.

    Attributes:
        payload: What the application gave; for an entity's slice the content of its record.
        processed: When it was recorded, by the store's clock.
    """

    item_id: str
    application: str
    revision: int
    processed: datetime
    run_id: str | None
    payload: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return what `manifest state` and the HTTP API give of it."""
        return document_of(self)


def derive_state(store: Store, application: Application) -> Iterator[ProcessedItem]:
    """Yield what an application has recorded of the items that it has processed, in order of arrival."""
    found = store.select(Done(application), BY_ARRIVAL)
    while page := list(islice(found, PAGE)):
        yield from _payloads(store, page, application)


def _payloads(store: Store, items: Sequence[Item], wanted: Application) -> Iterator[ProcessedItem]:
    places = {
        (item.item_id, mark.sequence): item
        for item in items
        for mark in item.processed
        if mark.application.covers(wanted)
    }
    records = store.find_records(list(places))
    for place, item in places.items():
        record = records.get(place)
        if isinstance(record, Record):
            theirs = payload_content(record.payload)
            yield ProcessedItem(
                item_id=item.item_id,
                application=str(record.application),
                revision=item.revision,
                payload=record.content if theirs is None else theirs,
                processed=record.timestamp,
                run_id=record.run_id,
            )
