"""Ages and lengths of time: `90d`, `12h`, `500ms`, or an ISO 8601 duration."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from lakewright.errors import UsageError
from lakewright.spec.expressions.values import Duration

__all__ = ["before_now", "parse_length"]

_SHORT = re.compile(r"(\d{1,6})\s*(s|m|h|d|w)", re.IGNORECASE)
_LENGTH = re.compile(r"(\d{1,9})\s*(ms|s|m|h|d)", re.IGNORECASE)
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def before_now(now: datetime, age: str) -> datetime:
    """Return the instant that lies `age` before `now`.

    Example:
        >>> before_now(datetime(2022, 3, 31), "2d"), before_now(datetime(2022, 3, 31), "P1M")
        (datetime.datetime(2022, 3, 29, 0, 0), datetime.datetime(2022, 2, 28, 0, 0))

    Raises:
        UsageError: The text is not an age, or the result lies before year 1.
    """
    short = _SHORT.fullmatch(age.strip())
    try:
        if short:
            return now - timedelta(**{_UNITS[short[2].lower()]: int(short[1])})
        found = Duration.parse(age)
        if found != Duration(abs(found.months), abs(found.days), abs(found.microseconds)):
            raise ValueError(f"{age!r} is negative")
        return (-found).after(now)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{age!r} is not an age: {error}", remedy="Write 12h, 90d, 8w or P3M.") from None


def parse_length(text: str) -> timedelta:
    """Return the length of time of a text such as `500ms`, `2s`, `10m`, `1h` or `PT2S`.

    Example:
        >>> parse_length("2s"), parse_length("PT1M")
        (datetime.timedelta(seconds=2), datetime.timedelta(seconds=60))

    Raises:
        ValueError: The text is not a length of time, is negative, or has months.
    """
    short = _LENGTH.fullmatch(text.strip())
    try:
        found = (
            timedelta(**{_UNITS[short[2].lower()]: int(short[1])}) if short else Duration.parse(text).exact
        )
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is not a length of time such as 2s, 10m or PT1H") from error
    if found < timedelta():
        raise ValueError(f"{text!r} is negative")
    return found
