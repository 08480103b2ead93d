"""What a store has read lately, so that the write that follows needn't read it again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Lock

from lakewright.manifest.item import Item
from lakewright.manifest.store import Document, DocumentKey, Seen

__all__ = ["Memo"]

MOST = 512
"""Items, and documents, that are remembered."""


class Memo:
    """Items and documents as they were when last seen, also those that weren't there.

    What is remembered may be outdated: it serves for a write that DynamoDB makes only if it isn't.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._items: OrderedDict[str, Item | None] = OrderedDict()
        self._documents: OrderedDict[DocumentKey, Document | None] = OrderedDict()

    def note(self, item_ids: Iterable[str], keys: Iterable[DocumentKey], seen: Seen) -> None:
        """Remember what was found when items and documents were asked for."""
        with self._lock:
            for item_id in item_ids:
                self._items.pop(item_id, None)
                self._items[item_id] = seen.items.get(item_id)
            for key in keys:
                self._documents.pop(key, None)
                self._documents[key] = seen.documents.get(key)
            for remembered in (self._items, self._documents):
                while len(remembered) > MOST:
                    remembered.popitem(last=False)

    def recall(self, item_ids: Sequence[str], keys: Sequence[DocumentKey]) -> Seen | None:
        """Return all of these as they were last seen, or None if one of them isn't remembered."""
        with self._lock:
            if not (self._items.keys() >= set(item_ids) and self._documents.keys() >= set(keys)):
                return None
            items = {i: item for i in item_ids if (item := self._items[i]) is not None}
            documents = {k: document for k in keys if (document := self._documents[k]) is not None}
        return Seen(items, documents)

    def forget(self, item_ids: Iterable[str], keys: Iterable[DocumentKey]) -> None:
        """Remember nothing of these any more."""
        with self._lock:
            for item_id in item_ids:
                self._items.pop(item_id, None)
            for key in keys:
                self._documents.pop(key, None)
