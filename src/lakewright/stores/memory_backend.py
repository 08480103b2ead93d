"""The kind `memory`: a manifest that is lost when the process ends, for tests."""

from __future__ import annotations

from lakewright.manifest.store import Store
from lakewright.stores.backend import Backend
from lakewright.stores.memory import MemoryStore

__all__ = ["MemoryBackend"]


class MemoryBackend(Backend):
    """An empty manifest in memory."""

    def open(self) -> Store:
        return MemoryStore()

    def open_existing(self) -> Store:
        return MemoryStore()
