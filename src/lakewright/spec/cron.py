"""Cron expressions with a time zone: the instants at which they are due.

The fields are those of Debian's cron, with `@daily` and the like. On a change to daylight saving time, a time
that does not exist is due at the first instant after the gap; a time that occurs twice is due once, at the
first. Expressions whose minute or hour starts with `*` follow elapsed time instead.

Source: the rules of the server, "Triggers". See `docs/decisions/015-times-of-triggers.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, available_timezones

from lakewright.spec.suggestions import meant

_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


def check_cron(text: str) -> str:
    """Return the expression without surrounding space.

    Raises:
        ValueError: The text is not a cron expression, or is never due.
    """
    from cronsim import CronSimError

    if len(_fields(text).split()) != len(("minute", "hour", "day", "month", "weekday")):
        raise ValueError(f"{text!r} does not have the five fields minute, hour, day, month and weekday")
    try:
        next(due_times(text, ZoneInfo("UTC"), datetime(2024, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        raise ValueError(f"{text!r} is not a cron expression: {str(error).lower()}") from None
    except StopIteration:
        raise ValueError(f"{text!r} is never due") from None
    return text.strip()


_NOT_IANA = ("posix", "right", "localtime", "posixrules")
"""Names in a machine's database of time zones that Java lacks."""


def find_zone(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name.

    Raises:
        ValueError: There is no such time zone.
    """
    try:
        found = ZoneInfo(name)
        if name.partition("/")[0] in _NOT_IANA:
            raise LookupError(name)
        return found
    except (OSError, ValueError, LookupError):
        remedy = meant(name, available_timezones()) or "use an IANA name"
        raise ValueError(f"unknown time zone {name!r}; {remedy}") from None


def due_times(cron: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Yield the instants after `after` at which an expression is due, in UTC, in order."""
    from cronsim import CronSim

    last = after.astimezone(UTC)
    for found in CronSim(_fields(cron), after.astimezone(zone)):
        at = found.astimezone(UTC)
        # In the hour that a change from daylight saving time repeats, cronsim starts over with the hour.
        if at > last:
            last = at
            yield at


def _fields(text: str) -> str:
    return _ALIASES.get(text.strip().lower(), text.strip())
