"""The slices of an entity that one target takes: all, those of a pattern, or those up to a name.

An instance of a job thereby takes its own slices, such as those of its day; the rules are Lakewright's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from lakewright.slices.discover import natural_key

__all__ = ["ALL_SLICES", "SliceSelection"]


@dataclass(frozen=True, slots=True)
class SliceSelection:
    """The slices that a target takes; with both conditions, those that meet both.

    Attributes:
        pattern: Pattern over whole names, with `*`, `?` and `[…]`; None for all.
        until: The last name, in natural order; names that begin with it are included. None for no end.

    Example:
        >>> day = SliceSelection(until="2024-05-02")
        >>> [day.takes(name) for name in ("2024-05-01.json", "2024-05-02-late.json", "2024-05-03.json")]
        [True, True, False]
    """

    pattern: str | None = None
    until: str | None = None

    def __str__(self) -> str:
        """Return the conditions as they are declared."""
        conditions = (("slices", self.pattern), ("until", self.until))
        return ", ".join(f"{key}: {value}" for key, value in conditions if value is not None)

    @property
    def is_limited(self) -> bool:
        """Whether some slices may be left to others."""
        return self.pattern is not None or self.until is not None

    def takes(self, name: str) -> bool:
        """Return whether a slice of this name is taken."""
        if self.pattern is not None and not fnmatchcase(name, self.pattern):
            return False
        return self.until is None or _is_until(name, self.until)


ALL_SLICES = SliceSelection()
"""Takes every slice."""


def _is_until(name: str, last: str) -> bool:
    # Keys end with the name itself, which only orders names that are otherwise equal.
    end = natural_key(last)[:-1]
    start = natural_key(name)[: len(end)]
    text = end[-1][2]
    return start <= end or (text != "" and start[:-1] == end[:-1] and start[-1][2].startswith(text))
