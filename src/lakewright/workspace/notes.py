"""What mappings and relations report of the rows that are read, until a run takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

OF_NO_MAPPING = ""
"""Stands for a relation that is read by no mapping."""


class Notes(dict[str, list[Callable[[], str | None]]]):
    """Functions by mapping; each returns None as long as there is nothing to report.

    Example:
        >>> notes = Notes()
        >>> notes.add("orders", lambda: "1 record is left out")
        >>> notes.take(["orders"]), notes.take(["orders"])
        (['1 record is left out'], [])
    """

    def add(self, mapping: str, note: Callable[[], str | None]) -> None:
        """Add a function whose text is reported for a mapping."""
        self.setdefault(mapping, []).append(note)

    def take(self, mappings: Iterable[str] | None = None) -> list[str]:
        """Return what some of the mappings report, or all of them, once."""
        found: dict[str, None] = {}
        for name in sorted(self if mappings is None else self.keys() & set(mappings)):
            texts = [(each, each()) for each in self.pop(name)]
            if waiting := [each for each, text in texts if text is None]:
                self[name] = waiting
            found |= dict.fromkeys(text for _, text in texts if text is not None)
        return list(found)
