"""A cache of what a store has read, so that the write that follows need not read it again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Lock

from lakewright.manifest.item import Item
from lakewright.manifest.store import Document, DocumentKey, Seen

__all__ = ["Cache"]

LARGEST = 512
"""Maximum number of items, and of documents, that are cached."""


class Cache:
    """Items and documents as last read, including those that did not exist.

    Entries may be outdated: they are used only for writes that DynamoDB refuses in that case.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._items: OrderedDict[str, Item | None] = OrderedDict()
        self._documents: OrderedDict[DocumentKey, Document | None] = OrderedDict()

    def store(self, item_ids: Iterable[str], keys: Iterable[DocumentKey], seen: Seen) -> None:
        """Cache the result of reading these items and documents."""
        with self._lock:
            for item_id in item_ids:
                self._items.pop(item_id, None)
                self._items[item_id] = seen.items.get(item_id)
            for key in keys:
                self._documents.pop(key, None)
                self._documents[key] = seen.documents.get(key)
            for entries in (self._items, self._documents):
                while len(entries) > LARGEST:
                    entries.popitem(last=False)

    def get(self, item_ids: Sequence[str], keys: Sequence[DocumentKey]) -> Seen | None:
        """Return all of these as last read, or None if one of them is not cached."""
        with self._lock:
            if not (self._items.keys() >= set(item_ids) and self._documents.keys() >= set(keys)):
                return None
            items = {i: item for i in item_ids if (item := self._items[i]) is not None}
            documents = {k: document for k in keys if (document := self._documents[k]) is not None}
        return Seen(items, documents)

    def drop(self, item_ids: Iterable[str], keys: Iterable[DocumentKey]) -> None:
        """Remove the entries of these items and documents."""
        with self._lock:
            for item_id in item_ids:
                self._items.pop(item_id, None)
            for key in keys:
                self._documents.pop(key, None)
