"""A manifest that isn't there yet: empty to whoever reads it; the first write makes it.

Who only looks leaves no file and no table behind, and needs no right to make one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from threading import Lock

from lakewright.errors import LakewrightError
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.record import Application, Record
from lakewright.manifest.store import Damage, Document, DocumentKey, Query, Seen, Store, Write, Written
from lakewright.stores.memory import MemoryStore

__all__ = ["UnmadeStore"]


class UnmadeStore:
    """A store that is opened, and made if need be, no sooner than it has to.

    Args:
        look: Opens the manifest, by whomever made, or tells the time there while there is none.
        make: Opens the manifest, made if there is none.
    """

    def __init__(self, look: Callable[[], Store | datetime], make: Callable[[], Store]) -> None:
        self._look = look
        self._make = make
        self._lock = Lock()
        self._made: Store | None = None

    @property
    def is_made(self) -> bool:
        """Whether there is a manifest by now."""
        return not isinstance(self._seen(), datetime)

    def made(self) -> Store:
        """Return the manifest itself, made if there is none: who is about to write asks it only once."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made

    def _seen(self) -> Store | datetime:
        """The manifest, or the time there while there is none."""
        with self._lock:
            if self._made is None:
                seen = self._look()
                if isinstance(seen, datetime):
                    return seen
                self._made = seen
            return self._made

    def _to_read(self) -> Store:
        seen = self._seen()
        return MemoryStore() if isinstance(seen, datetime) else seen

    def now(self) -> datetime:
        """Return the time by the store's own clock, in UTC, be it made or not."""
        seen = self._seen()
        return seen if isinstance(seen, datetime) else seen.now()

    def write(self, write: Write) -> Written:
        """Put down one write, durably."""
        return self.made().write(write)

    def write_many(self, writes: Iterable[Write]) -> Iterator[Written | LakewrightError]:
        """Put down many independent writes in few round trips, and yield what became of each."""
        return self.made().write_many(writes)

    def read(self, item_ids: Sequence[str]) -> Mapping[str, Item]:
        """Return the folds of these items; an item without records is left out."""
        return self._to_read().read(item_ids)

    def look_up(self, item_ids: Sequence[str], keys: Sequence[DocumentKey]) -> Seen:
        """Return some items and documents in one round trip."""
        return self._to_read().look_up(item_ids, keys)

    def records(self, item_id: str) -> tuple[Record, ...]:
        """Return the records of an item, in order of sequence."""
        return self._to_read().records(item_id)

    def select(self, query: Query) -> Iterator[Item]:
        """Yield the items that the query asks for, by item id."""
        return self._to_read().select(query)

    def counts(self) -> Mapping[tuple[Application, Verdict], int]:
        """Return how many items each application has in each verdict."""
        return self._to_read().counts()

    def document(self, kind: str, key: str) -> Document | None:
        """Return one document, or None."""
        return self._to_read().document(kind, key)

    def documents(
        self, kind: str, *, prefix: str = "", is_newest_first: bool = False, limit: int | None = None
    ) -> Iterator[Document]:
        """Yield documents of a kind whose key starts with `prefix`, by key or from the last key backwards."""
        return self._to_read().documents(kind, prefix=prefix, is_newest_first=is_newest_first, limit=limit)

    def scan(self) -> Iterator[Record | Damage]:
        """Yield every record, by item id and sequence."""
        return self._to_read().scan()

    def rebuild(self) -> None:
        """Make what is answered from follow from the records alone again."""
        self._to_read().rebuild()

    def close(self) -> None:
        """Let go of the store, if it was opened."""
        if self._made is not None:
            self._made.close()
