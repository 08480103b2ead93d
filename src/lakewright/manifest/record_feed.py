"""Following a manifest: the records added since the last call, without reading all of it each time.

A call lists the open items (ready, locked, failed, invalid), which are few, and reads those that closed since
the last call. It lists all items if the store's counts of closed items changed by more than these closings
explain. Otherwise it lists them at most every half minute, to find items that were requeued and processed
again between two calls and so left no trace in the counts.

Source: `processing-manifest.md`, "Use cases" (command post).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lakewright.manifest.item import Item
from lakewright.manifest.record import Application, Record
from lakewright.manifest.store import Query, Store
from lakewright.manifest.verdict import Verdict

OPEN = frozenset((Verdict.READY, Verdict.LOCKED, Verdict.FAILED, Verdict.INVALID))

OVERLAP = timedelta(minutes=1)
"""How far two listings overlap: a record is dated when its transaction begins, and visible when it ends."""

FULL_EVERY = timedelta(seconds=30)
"""All items are listed no more often than this, unless the counts require it."""

SHARE = 20
"""Listing all items takes at most 1/`SHARE` of the time."""


@dataclass(slots=True)
class RecordFeed:
    """The records added to a store since the feed was created.

    Attributes:
        store: The store to follow.
        application: The application whose items are followed; all items if it is None.
    """

    store: Store
    application: Application | None = None
    _begun: datetime = field(init=False)
    _listed: datetime = field(init=False)
    _listing: timedelta = field(default=timedelta(), init=False)
    _open: dict[str, Item] = field(init=False)
    _closed: int = field(init=False)
    _returned: dict[str, datetime] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._begun = self._listed = self.store.now()
        self._closed = self._count_closed()
        self._open = self._list_open()

    def new_records(self, *, is_thorough: bool = False) -> list[Record]:
        """Return the records added since the last call, by time; imported records are left out.

        Args:
            is_thorough: Whether to list all items even if listing the open ones would be enough.
        """
        now, closed, found = self.store.now(), self._count_closed(), self._list_open()
        gone = self.store.read([item_id for item_id in self._open if item_id not in found])
        seen = {**found, **gone}
        explained = sum(map(self._closed_of, seen.values())) - sum(map(self._closed_of, self._open.values()))
        is_due = now - self._listed > max(FULL_EVERY, SHARE * self._listing)
        if is_thorough or is_due or closed - self._closed != explained:
            seen |= self._list_recent()
            self._listing, is_due = self.store.now() - now, True
        records = [record for item in self._changed(seen) for record in self._unreturned(item)]
        self._returned |= {record.record_id: record.timestamp for record in records}
        if is_due:
            self._listed = now
            self._returned = {
                record_id: at for record_id, at in self._returned.items() if self._is_recent(at)
            }
        self._open, self._closed = found, closed
        return sorted(records, key=lambda record: (record.timestamp, record.item_id, record.sequence))

    def _changed(self, seen: Mapping[str, Item]) -> Iterable[Item]:
        for item in seen.values():
            before = self._open.get(item.item_id)
            if before is None or before.sequence != item.sequence:
                yield item

    def _unreturned(self, item: Item) -> Iterable[Record]:
        before = self._open.get(item.item_id)
        for record in self.store.records(item.item_id):
            is_later = record.sequence > before.sequence if before else record.timestamp > self._begun
            if is_later and record.record_id not in self._returned and self._is_recent(record.timestamp):
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
        return sum(
            number for (application, verdict), number in counts if self._is_closed(application, verdict)
        )

    def _closed_of(self, item: Item) -> int:
        return sum(self._is_closed(application, verdict) for application, verdict in item.verdicts().items())

    def _is_closed(self, application: Application, verdict: Verdict) -> bool:
        wanted = self.application
        is_followed = wanted is None or (
            application.name == wanted.name and wanted.instance_id in (None, application.instance_id)
        )
        return is_followed and verdict not in OPEN
