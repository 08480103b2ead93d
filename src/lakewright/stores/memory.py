"""The back end in memory: for tests, gone with the process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from threading import Lock
from typing import Any

from lakewright.errors import IllegalTransition, LakewrightError
from lakewright.manifest.batch import Batch
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.record import Application, Record
from lakewright.manifest.store import Damage, Document, DocumentKey, Query, Seen, Write, Written

__all__ = ["MemoryStore"]


class MemoryStore:
    """A store for one process; safe to share between its threads.

    Args:
        clock: Gives the store's time, in UTC.
    """

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._lock = Lock()
        self._items: dict[str, Item] = {}
        self._records: dict[str, list[Record]] = {}
        self._record_ids: set[str] = set()
        self._documents: dict[DocumentKey, Document | None] = {}

    @classmethod
    def open(cls, _settings: Mapping[str, Any]) -> MemoryStore:
        """Return a new, empty store."""
        return cls()

    @classmethod
    def look(cls, settings: Mapping[str, Any]) -> MemoryStore:
        """Return a new, empty store: looking leaves nothing behind that could be in anyone's way."""
        return cls.open(settings)

    def now(self) -> datetime:
        """Return the time by the store's own clock, in UTC."""
        return self._clock()

    def write(self, write: Write) -> Written:
        """Put down one write."""
        with self._lock:
            batch = Batch(items=self._items, documents=self._documents, now=self.now())
            written = batch.add(write)
            self._keep(batch)
        return written

    def _keep(self, batch: Batch) -> None:
        ids = {record.record_id for record in batch.records}
        if len(ids) < len(batch.records) or not ids.isdisjoint(self._record_ids):
            raise IllegalTransition("a record with one of these ids is there already; nothing was written")
        self._record_ids |= ids
        for record in batch.records:
            self._records.setdefault(record.item_id, []).append(record)
        self._items.update(batch.items)
        self._documents.update(batch.documents)

    def write_many(self, writes: Iterable[Write]) -> Iterator[Written | LakewrightError]:
        """Put down many independent writes, and yield what became of each."""
        for write in writes:
            try:
                yield self.write(write)
            except LakewrightError as error:
                yield error

    def read(self, item_ids: Sequence[str]) -> Mapping[str, Item]:
        """Return the folds of these items; an item without records is left out."""
        return {item_id: self._items[item_id] for item_id in item_ids if item_id in self._items}

    def look_up(self, item_ids: Sequence[str], keys: Sequence[DocumentKey]) -> Seen:
        """Return some items and documents."""
        with self._lock:
            found = {key: document for key in keys if (document := self._documents.get(key)) is not None}
            return Seen(self.read(item_ids), found)

    def records(self, item_id: str) -> tuple[Record, ...]:
        """Return the records of an item, in order of sequence."""
        return tuple(self._records.get(item_id, ()))

    def select(self, query: Query) -> Iterator[Item]:
        """Yield the items that the query asks for, by item id."""
        return (item for _, item in sorted(self._items.items()) if query.matches(item))

    def counts(self) -> Mapping[tuple[Application, Verdict], int]:
        """Return how many items each application has in each verdict."""
        counted = Counter(
            (Application.named(*application.key), verdict)
            for item in list(self._items.values())
            for application, verdict in item.verdicts().items()
        )
        return dict(counted)

    def document(self, kind: str, key: str) -> Document | None:
        """Return one document, or None."""
        return self._documents.get((kind, key))

    def documents(
        self, kind: str, *, prefix: str = "", is_newest_first: bool = False, limit: int | None = None
    ) -> Iterator[Document]:
        """Yield documents of a kind whose key starts with `prefix`, by key or from the last key backwards."""
        found = (
            document
            for (of_kind, key), document in sorted(self._documents.items(), key=lambda entry: entry[0])
            if document is not None and of_kind == kind and key.startswith(prefix)
        )
        return islice(reversed(list(found)) if is_newest_first else found, limit)

    def scan(self) -> Iterator[Record | Damage]:
        """Yield every record, by item id and sequence."""
        return (record for _, records in sorted(self._records.items()) for record in list(records))

    def rebuild(self) -> None:
        """Do nothing: what is answered from can't be changed from outside."""

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""
