"""Recovering watermarks from the records, independent of the watermark documents.

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
from lakewright.manifest.watermarks import WATERMARK, StoredWatermark, Watermark, WatermarkChange, Watermarks


@dataclass(frozen=True, slots=True)
class RecordedWatermarks:
    """The greatest watermark of each application and column among the records seen.

    Attributes:
        changes: The last change that an operator made to each watermark, by the watermark's key. Records from
            before that change are ignored.
        greatest: The watermarks, by key.
    """

    changes: Mapping[str, WatermarkChange] = field(default_factory=dict)
    greatest: dict[str, StoredWatermark] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Add the watermarks of a record; only PROCESSED records have any."""
        for recorded in _watermarks_of(record):
            change, greatest = self.changes.get(recorded.key), self.greatest.get(recorded.key)
            if change is not None and record.timestamp <= change.at:
                continue
            if greatest is None or recorded.watermark.is_after(greatest.watermark):
                self.greatest[recorded.key] = recorded


def missing_watermarks(store: Store) -> Iterator[StoredWatermark]:
    """Yield the watermarks that follow from records and operators' changes but have no document."""
    changes: dict[str, WatermarkChange] = {}
    for change in Watermarks(store).changes():
        changes.setdefault(change.watermark_key, change)
    set_by_operators = {key: change.stored for key, change in changes.items()}
    recorded = RecordedWatermarks(
        changes, {key: stored for key, stored in set_by_operators.items() if stored is not None}
    )
    for item_id, entries in groupby(store.history(), key=lambda entry: entry.item_id):
        records = list(entries)
        if replay(item_id, records)[0].problem is None:
            for record in records:
                if isinstance(record, Record):
                    recorded.add(record)
    present = {document.key for document in store.documents(WATERMARK)}
    yield from (stored for key, stored in sorted(recorded.greatest.items()) if key not in present)


def _watermarks_of(record: Record) -> Iterator[StoredWatermark]:
    content = record.content.get("watermarks") if record.state is State.PROCESSED else None
    for column, value in content.items() if isinstance(content, Mapping) else ():
        try:
            watermark = Watermark.from_json(value)
        except (LakewrightError, KeyError, TypeError):
            continue  # another tool's payload may use the name for something else
        yield StoredWatermark(record.application, column, watermark, record.item_id)
