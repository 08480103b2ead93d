"""A manifest that does not exist yet: it reads as empty, and the first write creates it.

Commands that only read therefore create no file and no table, and need no right to create one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from threading import Lock
from typing import Any

from lakewright.manifest.store import Outcome, Store, Write
from lakewright.stores.backend import Backend
from lakewright.stores.memory import MemoryStore


def _reading(method: str) -> Any:
    """Return the method of that name, which asks the manifest that exists, or an empty one."""
    return lambda store, *given, **named: getattr(store._readable(), method)(*given, **named)


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

    def write_many(self, writes: Iterable[Write]) -> Iterator[Outcome]:
        return self.create().write_many(writes)

    now = _reading("now")
    look_up = _reading("look_up")
    candidates = _reading("candidates")
    select = _reading("select")
    arrivals = _reading("arrivals")
    standings = _reading("standings")
    find_records = _reading("find_records")
    history = _reading("history")
    documents = _reading("documents")
    rebuild = _reading("rebuild")

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
