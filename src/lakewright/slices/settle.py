"""Slices that are still being written: the files of a slice without `_SUCCESS` have changed a moment ago.

Source: the rules of the server, "Triggers" (`settle`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lakewright.errors import SpecError
from lakewright.slices.bronze import SUCCESS
from lakewright.slices.discover import natural_key
from lakewright.spec.expressions.age import parse_length

if TYPE_CHECKING:
    from lakewright.slices.bronze import Slice
    from lakewright.slices.discover import Listing

__all__ = ["SETTLE", "modified_seconds", "seconds_to_settle", "settle_of", "without_unsettled"]

SETTLE = "lakewright.bronze.settle"
"""The configuration that says how long a slice must stay unchanged to count as complete."""

_LEAST_NANOSECONDS = 10**16
"""Times of files above this are in nanoseconds, others in milliseconds; as the former, it is April 1970."""


def settle_of(config: Mapping[str, str]) -> timedelta:
    """Return how long a slice must stay unchanged to count as complete; by default it need not.

    Raises:
        SpecError: The configured text is not a length of time.
    """
    try:
        return parse_length(config.get(SETTLE, "0s"))
    except ValueError as error:
        raise SpecError.of(f"configuration {SETTLE}: {error}", remedy="Write 2s, 1m or PT10S.") from None


def without_unsettled(listing: Listing, settle: timedelta, now: datetime) -> Listing:
    """Return a listing in which slices that are still being written are not complete."""
    if not settle:
        return listing
    young = frozenset(each.name for each in listing.slices if _is_unsettled(each, settle, now))
    if not young:
        return listing
    return replace(
        listing,
        slices=tuple(each for each in listing.slices if each.name not in young),
        incomplete=(*listing.incomplete, *sorted(young, key=natural_key)),
        unsettled=young,
    )


def _is_unsettled(slice_: Slice, settle: timedelta, now: datetime) -> bool:
    if SUCCESS in slice_.marks:
        return False
    # The time of a file that lies further ahead is that of another clock, and never gets old.
    return abs(now.timestamp() - _changed(slice_)) < settle.total_seconds()


def seconds_to_settle(listing: Listing, settle: timedelta, now: datetime) -> float | None:
    """Return in how many seconds the next slice counts as complete; None if all that stand there do."""
    young = [each for each in listing.slices if _is_unsettled(each, settle, now)]
    return min((_changed(each) + settle.total_seconds() - now.timestamp() for each in young), default=None)


def _changed(slice_: Slice) -> float:
    return modified_seconds(max((file.modified for file in slice_.files), default=0))


def modified_seconds(modified: int) -> float:
    """Return the time of a file, which listings have in nanoseconds or milliseconds, in seconds since 1970.

    Example:
        >>> modified_seconds(1_700_000_000_500_000_000), modified_seconds(1_700_000_000_500)
        (1700000000.5, 1700000000.5)
    """
    return modified / (1e9 if modified >= _LEAST_NANOSECONDS else 1e3)
