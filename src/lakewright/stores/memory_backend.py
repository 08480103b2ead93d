"""The kind `memory`: a manifest that is lost when the process ends, for tests."""

from __future__ import annotations

from lakewright.manifest.store import Store
from lakewright.stores.backend import Backend
from lakewright.stores.memory import MemoryStore


class MemoryBackend(Backend):
    """An empty manifest in memory."""

    @property
    def is_shared(self) -> bool:
        """Return False: it belongs to one process."""
        return False

    def open(self) -> Store:
        return MemoryStore()

    def open_existing(self) -> Store:
        return MemoryStore()
