"""The `unique` check: no value of a column occurs twice."""

from __future__ import annotations

from lakewright.documentation.checks.check import KeyCheck

__all__ = ["UniqueCheck"]


class UniqueCheck(KeyCheck):
    """Holds if no two rows have the same value in the column; nulls are ignored."""

    def claim(self, column: str | None) -> str:
        """Return that the column is unique."""
        return f"{self.needed(column)} is unique"

    def key(self, column: str | None) -> tuple[str, ...]:
        """Return the column."""
        return (self.needed(column),)
