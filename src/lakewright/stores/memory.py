"""The manifest in memory, for tests; it is lost when the process ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from threading import Lock

from lakewright.manifest.batch import Batch, touched
from lakewright.manifest.item import Item
from lakewright.manifest.readiness import BY_ID, Choice, Reading, belongs
from lakewright.manifest.record import Record
from lakewright.manifest.standing import Standing, standing_of
from lakewright.manifest.store import (
    Damage,
    Document,
    DocumentKey,
    Outcome,
    Seen,
    Store,
    Write,
)


class MemoryStore(Store):
    """A store for one process; its threads may share it.

    Args:
        clock: Returns the store's time, in UTC.
    """

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._lock = Lock()
        self._items: dict[str, Item] = {}
        self._records: dict[str, list[Record]] = {}
        self._record_ids: set[str] = set()
        self._documents: dict[DocumentKey, Document | None] = {}

    def now(self) -> datetime:
        return self._clock()

    def look_up(self, item_ids: Sequence[str] = (), keys: Sequence[DocumentKey] = ()) -> Seen:
        with self._lock:
            return self._held(item_ids, keys)

    def _held(self, item_ids: Sequence[str], keys: Sequence[DocumentKey]) -> Seen:
        items = {item_id: self._items[item_id] for item_id in item_ids if item_id in self._items}
        documents = {key: document for key in keys if (document := self._documents.get(key)) is not None}
        return Seen(items, documents)

    def write_many(self, writes: Iterable[Write]) -> Iterator[Outcome]:
        for write in writes:
            with self._lock:
                batch = Batch(self._held(*touched([write])), now=self.now(), taken=self._record_ids)
                outcome = batch.attempt(write)
                for record in batch.records:
                    self._record_ids.add(record.record_id)
                    self._records.setdefault(record.item_id, []).append(record)
                self._items.update(batch.items)
                self._documents.update(batch.documents)
            yield outcome

    def candidates(self, choice: Choice, reading: Reading = BY_ID) -> Iterator[str]:
        found = [reading.place_of(item) for item in list(self._items.values()) if belongs(item, choice)]
        places = sorted(filter(reading.includes, found), reverse=reading.is_newest_first)
        return islice((item_id for _, item_id in places), reading.limit)

    def standings(self) -> Mapping[Standing, int]:
        return Counter(map(standing_of, list(self._items.values())))

    def history(self, item_id: str | None = None) -> Iterator[Record | Damage]:
        if item_id is not None:
            return iter(tuple(self._records.get(item_id, ())))
        return chain.from_iterable(list(records) for _, records in sorted(self._records.items()))

    def documents(
        self, kind: str, *, prefix: str = "", is_newest_first: bool = False, limit: int | None = None
    ) -> Iterator[Document]:
        found = (
            document
            for (of_kind, key), document in sorted(self._documents.items(), key=lambda entry: entry[0])
            if document is not None and of_kind == kind and key.startswith(prefix)
        )
        return islice(reversed(list(found)) if is_newest_first else found, limit)

    def rebuild(self) -> None:
        """Do nothing: no one can edit the records behind the store's back."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
