"""The processing time: one instant for a whole slice.

Source: `processing-strategies.md`, "Processing Time Override".
"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

__all__ = ["parse_processing_time"]


def parse_processing_time(text: str, zone: ZoneInfo) -> datetime | None:
    """Return the instant of an ISO 8601 text in UTC, or None if it isn't one.

    Args:
        text: With an offset or without; then it is in `zone`.
        zone: The environment's time zone.

    Example:
        >>> parse_processing_time("2025-05-05T12:00:00", ZoneInfo("Europe/Berlin")).isoformat()
        '2025-05-05T10:00:00+00:00'
        >>> parse_processing_time("yesterday", ZoneInfo("UTC")) is None
        True
    """
    try:
        found = datetime.fromisoformat(text.strip())
        return (found.replace(tzinfo=zone) if found.tzinfo is None else found).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
