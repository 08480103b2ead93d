"""Instants that users write: ISO 8601, with or without an offset."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo


def parse_instant_in(text: str, zone: ZoneInfo) -> datetime | None:
    """Return the instant of an ISO 8601 text in UTC, or None if the text has another form.

    Args:
        text: A time with or without an offset; without one it is in `zone`.
        zone: The environment's time zone.

    Example:
        >>> from zoneinfo import ZoneInfo
        >>> parse_instant_in("2025-05-05T12:00:00", ZoneInfo("Europe/Berlin")).isoformat()
        '2025-05-05T10:00:00+00:00'
        >>> parse_instant_in("yesterday", ZoneInfo("UTC")) is None
        True
    """
    try:
        found = datetime.fromisoformat(text.strip())
        return (found.replace(tzinfo=zone) if found.tzinfo is None else found).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
