"""A manifest that does not exist yet: it reads as empty, and the first write creates it.

Commands that only read therefore create no file and no table, and need no right to create one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from threading import Lock

from lakewright.manifest.item import Item
from lakewright.manifest.readiness import BY_ID, Arrivals, Choice, Reading
from lakewright.manifest.record import Record
from lakewright.manifest.standing import Standing
from lakewright.manifest.store import Damage, Document, DocumentKey, Outcome, Seen, Store, Write
from lakewright.stores.backend import Backend
from lakewright.stores.memory import MemoryStore


class DeferredStore(Store):
    """A store that is opened on first use, and created only by a write.

    Until it exists each method checks again whether another process has created it.

    Args:
        backend: Opens the store.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._lock = Lock()
        self._store: Store | None = None

    @property
    def exists(self) -> bool:
        """Whether the manifest exists by now."""
        return not isinstance(self._existing(), datetime)

    def create(self) -> Store:
        """Return the manifest's store; the manifest is created if it does not exist."""
        with self._lock:
            if self._store is None:
                self._store = self._backend.open()
            return self._store

    def _existing(self) -> Store | datetime:
        """Return the store if the manifest exists, otherwise the back end's time."""
        with self._lock:
            if self._store is None:
                existing = self._backend.open_existing()
                if isinstance(existing, datetime):
                    return existing
                self._store = existing
            return self._store

    def _readable(self) -> Store:
        existing = self._existing()
        return MemoryStore(lambda: existing) if isinstance(existing, datetime) else existing

    def now(self) -> datetime:
        return self._readable().now()

    def look_up(self, item_ids: Sequence[str] = (), keys: Sequence[DocumentKey] = ()) -> Seen:
        return self._readable().look_up(item_ids, keys)

    def write_many(self, writes: Iterable[Write]) -> Iterator[Outcome]:
        return self.create().write_many(writes)

    def candidates(self, choice: Choice, reading: Reading = BY_ID) -> Iterator[str]:
        return self._readable().candidates(choice, reading)

    def select(self, choice: Choice, reading: Reading = BY_ID) -> Iterator[Item]:
        return self._readable().select(choice, reading)

    def arrivals(self) -> Mapping[Standing, Arrivals]:
        return self._readable().arrivals()

    def standings(self) -> Mapping[Standing, int]:
        return self._readable().standings()

    def find_records(self, places: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Record | Damage]:
        return self._readable().find_records(places)

    def history(self, item_id: str | None = None) -> Iterator[Record | Damage]:
        return self._readable().history(item_id)

    def documents(
        self, kind: str, *, prefix: str = "", is_newest_first: bool = False, limit: int | None = None
    ) -> Iterator[Document]:
        return self._readable().documents(kind, prefix=prefix, is_newest_first=is_newest_first, limit=limit)

    def rebuild(self) -> None:
        self._readable().rebuild()

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
