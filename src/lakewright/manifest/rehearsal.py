"""A rehearsal of writes: what a store would answer to them, without writing anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lakewright.manifest.batch import Batch, document_keys, duplicate_record, item_ids
from lakewright.manifest.item import Item
from lakewright.manifest.record import Record
from lakewright.manifest.store import Document, DocumentKey, Outcome, Seen, Store, Write

__all__ = ["Rehearsal"]


class Rehearsal:
    """Answers reads and writes as a store would after the writes so far, none of which reach the store.

    A record id that only an item outside of these writes has is not noticed.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._items: dict[str, Item] = {}
        self._documents: dict[DocumentKey, Document | None] = {}
        self._added: dict[str, list[Record]] = {}
        self._ids: set[str] = set()

    def read(self, item_ids: Sequence[str]) -> Mapping[str, Item]:
        """Return the items with these ids that exist."""
        return self.look_up(item_ids).items

    def look_up(self, item_ids: Sequence[str] = (), keys: Sequence[DocumentKey] = ()) -> Seen:
        """Return the items and documents that exist."""
        seen = self._store.look_up(item_ids, keys)
        items = {name: self._items[name] for name in item_ids if name in self._items}
        documents = {key: found for key in keys if (found := self._documents.get(key)) is not None}
        return Seen({**seen.items, **items}, {**seen.documents, **documents})

    def records(self, item_id: str) -> tuple[Record, ...]:
        """Return the readable records of an item."""
        return (*self._store.records(item_id), *self._added.get(item_id, ()))

    def write_many(self, writes: Iterable[Write]) -> Iterator[Outcome]:
        """Yield the outcome that each write would have."""
        planned = list(writes)
        seen = self.look_up(item_ids(planned), document_keys(planned))
        items = dict(seen.items)
        documents: dict[DocumentKey, Document | None] = dict(seen.documents)
        for write in planned:
            batch = Batch(items=items, documents=documents, now=self._store.now())
            outcome = batch.attempt(write)
            ids = {record.record_id for record in batch.records}
            if len(ids) < len(batch.records) or not ids.isdisjoint(self._ids):
                yield duplicate_record()
                continue
            self._keep(batch, ids)
            items.update(batch.items)
            documents.update(batch.documents)
            yield outcome

    def _keep(self, batch: Batch, ids: set[str]) -> None:
        self._ids |= ids
        self._items.update(batch.items)
        self._documents.update(batch.documents)
        for record in batch.records:
            self._added.setdefault(record.item_id, []).append(record)
