"""Watermarks as records tell of them, whatever the documents say.

Source: `processing-strategies.md`, "Merge Strategy" (watermark in the configuration).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from lakewright.errors import LakewrightError
from lakewright.manifest.record import Record, State
from lakewright.manifest.replay import replay
from lakewright.manifest.store import Store
from lakewright.manifest.watermark import WATERMARK, Change, Standing, Watermark, Watermarks

__all__ = ["Brought", "lost_watermarks"]


@dataclass(frozen=True, slots=True)
class Brought:
    """The greatest watermark of each application and column.

    Attributes:
        changes: The last thing that somebody did to a watermark, by its key; what was brought before that
            doesn't count.
        standings: The watermarks, by key.
    """

    changes: Mapping[str, Change] = field(default_factory=dict)
    standings: dict[str, Standing] = field(default_factory=dict)

    def follow(self, record: Record) -> None:
        """Take note of what a record brings; only a PROCESSED one brings anything."""
        for standing in _standings(record):
            change, best = self.changes.get(standing.key), self.standings.get(standing.key)
            if change is not None and record.timestamp <= change.at:
                continue
            if best is None or standing.watermark.is_after(best.watermark):
                self.standings[standing.key] = standing


def lost_watermarks(store: Store) -> Iterator[Standing]:
    """Yield watermarks that follow from records and from what somebody did, but have no document."""
    changes: dict[str, Change] = {}
    for change in Watermarks(store).changes():
        changes.setdefault(change.watermark_key, change)
    made = {key: change.standing for key, change in changes.items()}
    brought = Brought(changes, {key: standing for key, standing in made.items() if standing is not None})
    for item_id, entries in groupby(store.history(), key=lambda entry: entry.item_id):
        records = list(entries)
        if replay(item_id, records)[0].problem is None:
            for record in records:
                if isinstance(record, Record):
                    brought.follow(record)
    present = {document.key for document in store.documents(WATERMARK)}
    yield from (standing for key, standing in sorted(brought.standings.items()) if key not in present)


def _standings(record: Record) -> Iterator[Standing]:
    brought = record.content.get("watermarks") if record.state is State.PROCESSED else None
    for column, value in brought.items() if isinstance(brought, Mapping) else ():
        try:
            watermark = Watermark.from_json(value)
        except (LakewrightError, KeyError, TypeError):
            continue  # another tool's payload may use the name for something else
        yield Standing(record.application, column, watermark, record.item_id)
