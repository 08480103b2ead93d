"""Arguments of helpers and methods, read as what they must be; and families of functions over units of time.

A text stands for the value that it names wherever a helper takes one: `LocalDate.addDays('2022-11-01', 1)`.
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
    """Return the value as an expression prints it."""
    return render_value(value)


def as_whole(value: object) -> int:
    """Return the whole number that a value is, or that its text names."""
    number = (
        value
        if isinstance(value, int) and not isinstance(value, bool)
        else values.parse_integer(as_text(value))
    )
    if abs(number) > 10**15:
        raise ValueError(f"{number} is too large a number here")
    return number


def as_date(value: object) -> date:
    """Return the date that a value is, has, or names."""
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else values.parse_date(as_text(value))


def as_local(value: object) -> datetime:
    """Return the local date and time; of an instant that in UTC, of a date its midnight."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, date):
        return datetime.combine(value, time.min)
    return values.parse_datetime(as_text(value))


def as_timestamp(value: object) -> datetime:
    """Return the instant in UTC; a local date and time counts as in UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime.combine(value, time.min, UTC)
    return values.parse_timestamp(as_text(value))


def as_duration(value: object) -> Duration:
    """Return the duration that a value is or names."""
    return value if isinstance(value, Duration) else Duration.parse(as_text(value))


def as_exact(value: object) -> Duration:
    """Return a duration in exact time, as Java's `Duration` has it: a day is 24 hours."""
    duration = as_duration(value)
    if duration.months:
        raise ValueError(f"{duration} has months; use Period for those")
    return Duration(microseconds=duration.microseconds + duration.days * values.SECONDS_A_DAY * 1_000_000)


def as_calendar(value: object) -> Duration:
    """Return a duration in months and days, as Java's `Period` has it."""
    duration = as_duration(value)
    if duration.microseconds:
        raise ValueError(f"{duration} has hours or less; use Duration for those")
    return duration


def between(start: object, end: object) -> Duration:
    """Return the exact time from one instant to another."""
    return Duration(microseconds=(as_timestamp(end) - as_timestamp(start)) // timedelta(microseconds=1))


def total_seconds(duration: Duration) -> int:
    """Return the length in whole seconds."""
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
    """Return functions such as `plusDays(moment, count)` for each unit."""

    def mover(unit: Duration) -> Callable[[object, object], object]:
        return lambda value, count: (unit * (sign * as_whole(count))).after(read(value))

    return {f"{prefix}{name}": mover(UNITS[name]) for name in units}


def lengths(units: Iterable[str], *, is_exact: bool) -> dict[str, Callable[[object], object]]:
    """Return functions such as `ofDays(count)` for each unit."""

    def maker(unit: Duration) -> Callable[[object], object]:
        return lambda count: (as_exact(unit) if is_exact else unit) * as_whole(count)

    return {f"of{name}": maker(UNITS[name]) for name in units}
