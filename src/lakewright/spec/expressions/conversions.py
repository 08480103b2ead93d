"""Conversion of the arguments of helpers and methods, and functions for each unit of time.

A helper also accepts a text that names a value: `LocalDate.addDays('2022-11-01', 1)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from lakewright.spec.expressions import values
from lakewright.spec.expressions.values import Duration, render_value

__all__ = [
    "DATE_UNITS",
    "TIME_UNITS",
    "as_calendar",
    "as_date",
    "as_duration",
    "as_exact",
    "as_local",
    "as_text",
    "as_timestamp",
    "as_whole",
    "between",
    "lengths",
    "moving",
    "total_seconds",
]


def as_text(value: object) -> str:
    """Return the text that an expression renders for a value."""
    return render_value(value)


def as_whole(value: object) -> int:
    """Return a value, or the text of one, as a whole number."""
    number = (
        value
        if isinstance(value, int) and not isinstance(value, bool)
        else values.parse_integer(as_text(value))
    )
    if abs(number) > 10**15:
        raise ValueError(f"the number {number} is too large")
    return number


def as_date(value: object) -> date:
    """Return a date, the date of a date and time, or the date that a text names."""
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else values.parse_date(as_text(value))


def as_local(value: object) -> datetime:
    """Return a value as local date and time. Timestamps are converted to UTC; dates become midnight."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, date):
        return datetime.combine(value, time.min)
    return values.parse_datetime(as_text(value))


def as_timestamp(value: object) -> datetime:
    """Return a value as timestamp in UTC. A local date and time is taken to be in UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime.combine(value, time.min, UTC)
    return values.parse_timestamp(as_text(value))


def as_duration(value: object) -> Duration:
    """Return a duration, or the duration that a text names."""
    return value if isinstance(value, Duration) else Duration.parse(as_text(value))


def as_exact(value: object) -> Duration:
    """Return a duration in exact time, like Java's `Duration`. A day has 24 hours."""
    duration = as_duration(value)
    if duration.months:
        raise ValueError(f"{duration} contains months; use Period instead")
    return Duration(microseconds=duration.microseconds + duration.days * values.SECONDS_A_DAY * 1_000_000)


def as_calendar(value: object) -> Duration:
    """Return a duration in months and days, like Java's `Period`."""
    duration = as_duration(value)
    if duration.microseconds:
        raise ValueError(f"{duration} contains time; use Duration instead")
    return duration


def between(start: object, end: object) -> Duration:
    """Return the exact time between two instants."""
    return Duration(microseconds=(as_timestamp(end) - as_timestamp(start)) // timedelta(microseconds=1))


def total_seconds(duration: Duration) -> int:
    """Return the length of a duration in whole seconds."""
    return as_exact(duration).microseconds // 1_000_000


UNITS: Mapping[str, Duration] = {
    "Years": Duration(months=12),
    "Months": Duration(months=1),
    "Weeks": Duration(days=7),
    "Days": Duration(days=1),
    "Hours": Duration(microseconds=3_600_000_000),
    "Minutes": Duration(microseconds=60_000_000),
    "Seconds": Duration(microseconds=1_000_000),
    "Millis": Duration(microseconds=1_000),
}
DATE_UNITS = ("Years", "Months", "Weeks", "Days")
TIME_UNITS = ("Hours", "Minutes", "Seconds")


def moving(
    prefix: str, units: Iterable[str], read: Callable[[object], Any], sign: int = 1
) -> dict[str, Callable[[object, object], object]]:
    """Return, for each unit, the functions that shift a moment, such as `plusDays(moment, count)`."""

    def mover(unit: Duration) -> Callable[[object, object], object]:
        return lambda value, count: (unit * (sign * as_whole(count))).after(read(value))

    return {f"{prefix}{name}": mover(UNITS[name]) for name in units}


def lengths(units: Iterable[str], *, is_exact: bool) -> dict[str, Callable[[object], object]]:
    """Return, for each unit, the function that makes a duration, such as `ofDays(count)`."""

    def maker(unit: Duration) -> Callable[[object], object]:
        return lambda count: (as_exact(unit) if is_exact else unit) * as_whole(count)

    return {f"of{name}": maker(UNITS[name]) for name in units}
