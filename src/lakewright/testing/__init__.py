"""What users import in tests of their own projects."""

from lakewright.stores.memory import MemoryStore

__all__ = ["MemoryStore"]
