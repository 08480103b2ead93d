"""List the manifest's items with their verdicts, show one with its records, count them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lakewright.app import App
from lakewright.manifest.item import Item
from lakewright.manifest.record import Record
from lakewright.usecases.items import Choice, Row, Rows, chosen_application, find_item

__all__ = ["ItemHistory", "count_items", "list_items", "show_item"]


@dataclass(frozen=True, slots=True)
class ItemHistory:
    """One item with its verdicts and all its records."""

    item: Item
    rows: Sequence[Row]
    records: Sequence[Record]

    def as_json(self) -> dict[str, Any]:
        """Return the document that `manifest show -o json` prints."""
        return {
            "item_id": self.item.item_id,
            "verdicts": {str(row.application): row.verdict.value for row in self.rows},
            "records": [record.as_json() for record in self.records],
        }


def list_items(
    app: App,
    words: Iterable[str] = (),
    *,
    application: str | None = None,
    entity: str | None = None,
    is_stale: bool = False,
    limit: int | None = None,
) -> list[Row]:
    """Return the items with their verdicts, one row for each application.

    Args:
        app: The project.
        words: Verdicts and states; only rows with one of them are returned. Without words, all rows.
        application: Only rows for this application: `name:instance`, or `name`.
        entity: Only slices of this entity.
        is_stale: Only items with a stale lock.
        limit: The largest number of rows.

    Raises:
        UsageError: There is no such verdict, state or application.
        SpecError: There is no such entity.
    """
    choice = Choice.of(words)
    only = chosen_application(app, application, entity)
    rows = Rows(app)
    found = (
        row
        for item in app.store.select(choice.query(only))
        for row in rows.of(item, only)
        if choice.includes(row) and (row.is_stale or not is_stale)
    )
    return list(islice(found, limit))


def show_item(app: App, text: str) -> ItemHistory:
    """Return one item with its verdicts and records.

    Raises:
        UsageError: The manifest has no such item.
    """
    item = find_item(app, text)
    return ItemHistory(item, tuple(Rows(app).of(item)), app.store.records(item.item_id))


def count_items(app: App) -> dict[str, dict[str, int]]:
    """Return the number of items by application and verdict."""
    counts: dict[str, dict[str, int]] = {}
    for (application, verdict), count in app.store.counts().items():
        counts.setdefault(str(application), {})[verdict.value] = count
    return counts
