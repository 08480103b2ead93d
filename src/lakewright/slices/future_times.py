"""Warnings of processing times in the future, as of a slice with a wrong date in its name."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from lakewright.errors import Fault
from lakewright.manifest.lock import command
from lakewright.slices.discover import called_name
from lakewright.spec.models.entity import Strategy
from lakewright.spec.words import first_of

__all__ = ["future_times_fault", "future_warning"]

TOLERANCE = timedelta(days=1)
"""How much later than now a time may be: the date of a slice may be that of another time zone."""

MOST_NAMED = 3


def future_warning(at: datetime, now: datetime, strategy: Strategy) -> str | None:
    """Return that a processing time is in the future, and what follows from it; None if it is not.

    Example:
        >>> from datetime import UTC
        >>> noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
        >>> future_warning(noon + timedelta(hours=23), noon, Strategy.MERGE)
        >>> future_warning(noon + timedelta(days=2), noon, Strategy.MERGE)
        'the processing time 2024-05-03T12:00:00+00:00 is in the future'
    """
    if at <= now + TOLERANCE:
        return None
    told = f"the processing time {at.isoformat()} is in the future"
    if strategy is not Strategy.HISTORIC:
        return told
    return f"{told}: new versions begin then, and slices with earlier times are refused afterwards"


def future_times_fault(
    called: str, given: Iterable[tuple[str, datetime | None]], strategy: Strategy, now: datetime
) -> Fault | None:
    """Return that the times of pending slices are in the future, with the command that skips these, or None.

    Args:
        called: What commands call the entity.
        given: The slices with their processing times; None is that of now.
        strategy: By which they are processed.
        now: The present time.
    """
    told = [(name, why) for name, at in given if at and (why := future_warning(at, now, strategy))]
    if not told:
        return None
    names = [name for name, _ in told]
    skipping = command("skip", *(called_name(called, name) for name in names[:MOST_NAMED]))
    if len(told) == 1:
        return Fault(f"{names[0]}: {told[0][1]}", remedy=f"If its date is wrong, leave it out: `{skipping}`.")
    lines = [f"{name}: {why}" for name, why in told]
    return Fault(
        first_of(lines, MOST_NAMED, "\n"), remedy=f"If their dates are wrong, leave them out: `{skipping}`."
    )
