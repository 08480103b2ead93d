"""Following a manifest: the records that came since the last look, without reading all of it each time.

A look lists the items that are open (ready, locked, failed, invalid), which are few, and reads those that
have closed since. Where the store counts other closed items than that explains, and every half minute or more
for what left no trace in the counts (requeued and processed again between two looks), all items are listed.

Source: `processing-manifest.md`, "Use cases" (command post).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.record import Application, Record
from lakewright.manifest.store import Query, Store

__all__ = ["Watch"]

OPEN = frozenset((Verdict.READY, Verdict.LOCKED, Verdict.FAILED, Verdict.INVALID))

OVERLAP = timedelta(minutes=1)
"""How far looks overlap: a record is dated when its transaction begins, and seen once that has ended."""

THOROUGH = timedelta(seconds=30)
SHARE = 20
"""All items are listed at most for one part in so many of the time."""


@dataclass(slots=True)
class Watch:
    """What has been seen of a store.

    Attributes:
        application: Whose items are followed; everyone's where it is None.
    """

    store: Store
    application: Application | None = None
    _begun: datetime = field(init=False)
    _listed: datetime = field(init=False)
    _listing: timedelta = field(default=timedelta(), init=False)
    _open: dict[str, Item] = field(init=False)
    _closed: int = field(init=False)
    _told: dict[str, datetime] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._begun = self._listed = self.store.now()
        self._closed = self._count_closed()
        self._open = self._list_open()

    def news(self, *, is_thorough: bool = False) -> list[Record]:
        """Return the records that came since the last call, by time; those of an import aren't told.

        Args:
            is_thorough: Whether all items are listed, however cheap a look would do.
        """
        now, closed, found = self.store.now(), self._count_closed(), self._list_open()
        gone = self.store.read([item_id for item_id in self._open if item_id not in found])
        seen = {**found, **gone}
        explained = sum(map(self._closed_of, seen.values())) - sum(map(self._closed_of, self._open.values()))
        is_due = now - self._listed > max(THOROUGH, SHARE * self._listing)
        if is_thorough or is_due or closed - self._closed != explained:
            seen |= self._list_recent()
            self._listing, is_due = self.store.now() - now, True
        records = [record for item in self._changed(seen) for record in self._unseen(item)]
        self._told |= {record.record_id: record.timestamp for record in records}
        if is_due:
            self._listed = now
            self._told = {record_id: at for record_id, at in self._told.items() if self._is_recent(at)}
        self._open, self._closed = found, closed
        return sorted(records, key=lambda record: (record.timestamp, record.item_id, record.sequence))

    def _changed(self, seen: Mapping[str, Item]) -> Iterable[Item]:
        for item in seen.values():
            before = self._open.get(item.item_id)
            if before is None or before.sequence != item.sequence:
                yield item

    def _unseen(self, item: Item) -> Iterable[Record]:
        before = self._open.get(item.item_id)
        for record in self.store.records(item.item_id):
            is_later = record.sequence > before.sequence if before else record.timestamp > self._begun
            if is_later and record.record_id not in self._told and self._is_recent(record.timestamp):
                yield record

    def _is_recent(self, at: datetime) -> bool:
        return at > self._listed - OVERLAP

    def _list_open(self) -> dict[str, Item]:
        found = self.store.select(Query(application=self.application, verdicts=OPEN))
        return {item.item_id: item for item in found}

    def _list_recent(self) -> dict[str, Item]:
        found = self.store.select(Query(application=self.application))
        return {item.item_id: item for item in found if item.since and self._is_recent(item.since)}

    def _count_closed(self) -> int:
        counts = self.store.counts().items()
        return sum(number for (whose, verdict), number in counts if self._is_closed(whose, verdict))

    def _closed_of(self, item: Item) -> int:
        return sum(self._is_closed(whose, verdict) for whose, verdict in item.verdicts().items())

    def _is_closed(self, whose: Application, verdict: Verdict) -> bool:
        asked = self.application
        is_asked = asked is None or (
            whose.name == asked.name and asked.instance_id in (None, whose.instance_id)
        )
        return is_asked and verdict not in OPEN
