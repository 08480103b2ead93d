"""Helpers for tests of users' own projects: a manifest in memory."""

from lakewright.stores.memory import MemoryStore

__all__ = ["MemoryStore"]
