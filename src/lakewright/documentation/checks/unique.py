"""The `unique` check: a column in which no value is there twice."""

from __future__ import annotations

from lakewright.documentation.checks.check import KeyCheck

__all__ = ["UniqueCheck"]


class UniqueCheck(KeyCheck):
    """Holds if no two rows have the same value in the column; null is no value."""

    def claim(self, column: str | None) -> str:
        """Return what must hold."""
        return f"{self.needed(column)} is unique"

    def key(self, column: str | None) -> tuple[str, ...]:
        """Return the column."""
        return (self.needed(column),)
