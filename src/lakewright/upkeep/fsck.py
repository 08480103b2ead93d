"""Checking a store's derived data against its records, and the watermarks that follow from these.

Source: `processing-strategies.md`, "Merge Strategy" (watermark in the configuration).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from lakewright.errors import LakewrightError
from lakewright.manifest.record import Record, State
from lakewright.manifest.replay import replay
from lakewright.manifest.standing import Standing, standing_of
from lakewright.manifest.store import Damage, Query, Store
from lakewright.manifest.verdict import Verdict
from lakewright.manifest.watermarks import WATERMARK, StoredWatermark, Watermark, WatermarkChange, Watermarks


def fsck(store: Store) -> Iterator[Damage]:
    """Yield the damage in a store: illegal records, and derived data that does not match the records."""
    listed = store.select(Query())
    answer = next(listed, None)
    tally: Counter[Standing] = Counter()
    for item_id, records in groupby(store.history(), key=lambda record: record.item_id):
        item, damages = replay(item_id, records)
        yield from damages
        tally[standing_of(item)] += 1
        while answer is not None and answer.item_id < item_id:
            yield Damage(answer.item_id, None, "it is listed, but has no records")
            answer = next(listed, None)
        if answer is None or answer.item_id != item_id:
            yield Damage(item_id, None, "it has records, but isn't listed")
            continue
        if answer != item:
            yield Damage(item_id, None, "it is listed in another state than its records give")
        answer = next(listed, None)
    for left_over in [] if answer is None else [answer, *listed]:
        yield Damage(left_over.item_id, None, "it is listed, but has no records")
    yield from _miscounted(store, tally)


def _miscounted(store: Store, tally: Mapping[Standing, int]) -> Iterator[Damage]:
    """Yield the differences between the standings of all items and the store's counts and lists."""
    if dict(store.standings()) != tally:
        yield Damage("*", None, "the counts by verdict differ from the items")
    for verdict in Verdict:
        query = Query(verdicts=frozenset({verdict}))
        expected = sum(number for standing, number in tally.items() if query.admits(standing))
        listed = sum(1 for _ in store.select(query))
        if listed != expected:
            yield Damage("*", None, f"items listed as {verdict}: {listed} instead of {expected}")


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
