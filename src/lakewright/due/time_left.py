"""How long slices will take, by those that were processed last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

MOST_KNOWN = 5
"""How many of the last slices count: those before them may have met another table, or another machine."""


@dataclass(frozen=True, slots=True)
class TimedSlice:
    """A slice that was processed.

    Attributes:
        size: The bytes of its files.
        seconds: How long it took.
    """

    size: int
    seconds: float


def time_left(known: Sequence[TimedSlice], rest: Sequence[int], elapsed: float = 0.0) -> float | None:
    """Return the seconds that slices will take; None if no slice is known.

    A small slice takes as long as a commit, a large one as long as its bytes: the larger of both estimates
    counts. Each is made with the middle one of the last slices, as the first one of a process takes longer.

    Args:
        known: The slices that were processed, the last one last.
        rest: The bytes of the slices that are not processed yet, 0 where they are not known.
        elapsed: The seconds since these were begun.
    """
    last = known[-MOST_KNOWN:]
    if not last:
        return None
    by_number = median_low(each.seconds for each in last) * len(rest)
    sized = [each.seconds / each.size for each in last if each.size]
    by_bytes = median_low(sized) * sum(rest) if sized else 0.0
    return max(by_number, by_bytes) - elapsed
