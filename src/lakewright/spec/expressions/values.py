"""Values that users write and expressions compute, and the texts they become again.

A date is a `date`, a local date and time a `datetime` without zone, a timestamp a `datetime` in UTC.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Self, TypeAlias, TypeVar

__all__ = [
    "Duration",
    "Value",
    "ValueType",
    "parse_boolean",
    "parse_date",
    "parse_datetime",
    "parse_integer",
    "parse_timestamp",
    "parse_value",
    "render_value",
]

Moment = TypeVar("Moment", bound=date)

LONGEST_NUMBER = 40
SECONDS_A_DAY = 86_400

ISO_DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?:(?P<years>[+-]?\d+)Y)?(?:(?P<months>[+-]?\d+)M)?(?:(?P<weeks>[+-]?\d+)W)?(?:(?P<days>[+-]?\d+)D)?"
    r"(?P<time>T(?:(?P<hours>[+-]?\d+)H)?(?:(?P<minutes>[+-]?\d+)M)?(?:(?P<seconds>[+-]?\d+(?:\.\d{1,6})?)S)?)?",
    re.IGNORECASE,
)
ISO_DATETIME = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<time>\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)\s?(?P<zone>Z|[+-]\d{2}(?::?\d{2})?)?)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time: calendar months and days, and exact microseconds.

    Days and exact time are kept apart only as far as they were written: `P1D` is one day, `PT24H` is 24
    hours; where there is no time zone, as everywhere in a project, the two have the same length.

    Example:
        >>> Duration.parse("P1M").after(date(2022, 1, 31))
        datetime.date(2022, 2, 28)
    """

    months: int = 0
    days: int = 0
    microseconds: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the duration of an ISO 8601 text such as `P1M`, `P1DT12H` or `PT15M`.

        Raises:
            ValueError: The text isn't such a duration.
        """
        found = ISO_DURATION.fullmatch(text.strip()) if len(text) <= LONGEST_NUMBER * 3 else None
        numbers = found.groupdict() if found else {}
        if not found or not any(numbers[part] for part in _PARTS) or numbers["time"] in ("T", "t"):
            raise ValueError(f"{text!r} is not a duration such as P1D, PT15M or P1M")
        sign = -1 if numbers["sign"] == "-" else 1
        part = {name: int(numbers[name] or 0) for name in _PARTS if name != "seconds"}
        exact = part["hours"] * 3600 + part["minutes"] * 60
        micros = exact * 1_000_000 + int(Decimal(numbers["seconds"] or 0) * 1_000_000)
        return cls(
            sign * (part["years"] * 12 + part["months"]),
            sign * (part["weeks"] * 7 + part["days"]),
            sign * micros,
        )

    @property
    def is_zero(self) -> bool:
        """Whether it has no length."""
        return not (self.months or self.days or self.microseconds)

    @property
    def exact(self) -> timedelta:
        """Its days and time.

        Raises:
            ValueError: It has months, whose length depends on the date.
        """
        if self.months:
            raise ValueError(f"{self} has months, whose length depends on the date")
        return timedelta(days=self.days, microseconds=self.microseconds)

    def __neg__(self) -> Duration:
        return Duration(-self.months, -self.days, -self.microseconds)

    def __mul__(self, factor: int) -> Duration:
        """Return the duration `factor` times over; months stay months."""
        return Duration(self.months * factor, self.days * factor, self.microseconds * factor)

    def after(self, start: Moment) -> Moment:
        """Return the date or time that is this long after `start`; a day that a month lacks is its last.

        Raises:
            ValueError: A part of a day was to be added to a date.
            OverflowError: The result is beyond year 1 to 9999.
        """
        moved = _plus_months(start, self.months)
        if isinstance(moved, datetime):
            return moved + timedelta(days=self.days, microseconds=self.microseconds)
        days, rest = divmod(self.microseconds, SECONDS_A_DAY * 1_000_000)
        if rest:
            raise ValueError(f"{self} is not a whole number of days, so it can't be added to a date")
        return moved + timedelta(days=self.days + days)

    def __str__(self) -> str:
        """Return the ISO 8601 text; exact time is written in hours, minutes and seconds."""
        years, months = _split(self.months, 12)
        date_part = _texts((years, "Y"), (months, "M"), (self.days, "D"))
        hours, rest = _split(self.microseconds, 3_600_000_000)
        minutes, micros = _split(rest, 60_000_000)
        seconds = format(Decimal(micros).scaleb(-6).normalize(), "f")
        time_part = _texts((hours, "H"), (minutes, "M")) + (f"{seconds}S" if micros else "")
        text = "P" + date_part + (f"T{time_part}" if time_part else "")
        return text if text != "P" else "PT0S"


_PARTS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")
Value: TypeAlias = "str | int | float | bool | Decimal | date | datetime | Duration | None"
"""What an expression can come to, apart from the project's own objects."""


def _texts(*parts: tuple[int, str]) -> str:
    return "".join(f"{number}{unit}" for number, unit in parts if number)


def _split(number: int, size: int) -> tuple[int, int]:
    """Return quotient and rest, both with the sign of `number`."""
    quotient, rest = divmod(abs(number), size)
    return (quotient, rest) if number >= 0 else (-quotient, -rest)


def _plus_months(start: Moment, months: int) -> Moment:
    if not months:
        return start
    years, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if not 1 <= years <= 9999:
        raise OverflowError(f"{start} and {months} months is beyond the years 1 to 9999")
    return start.replace(year=years, month=month + 1, day=min(start.day, monthrange(years, month + 1)[1]))


class ValueType(StrEnum):
    """Type of a parameter, a partition or an argument."""

    STRING = "string"
    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    DURATION = "duration"

    @classmethod
    def parse(cls, text: str) -> ValueType:
        """Return the type that a text names, in any case; the names of SQL are known too.

        Raises:
            ValueError: There is no such type.

        Example:
            >>> ValueType.parse("BIGINT").value
            'integer'
        """
        name = text.strip().lower().partition("(")[0]
        found = _TYPE_NAMES.get(name)
        if found is None:
            raise ValueError(f"no type {text!r} for a value; there are {', '.join(cls)}")
        return found


_TYPE_NAMES: Mapping[str, ValueType] = {
    **{kind.value: kind for kind in ValueType},
    **dict.fromkeys(("text", "varchar", "char"), ValueType.STRING),
    **dict.fromkeys(("int", "long", "bigint", "short", "smallint", "byte", "tinyint"), ValueType.INTEGER),
    **dict.fromkeys(("double", "real"), ValueType.FLOAT),
    "numeric": ValueType.DECIMAL,
    "bool": ValueType.BOOLEAN,
}


def parse_value(kind: ValueType | str, text: str) -> Value:
    """Return the value that a text stands for.

    A timestamp without an offset is in UTC.

    Raises:
        ValueError: The text isn't a value of that type, or there is no such type.

    Example:
        >>> parse_value("date", "2022-11-01")
        datetime.date(2022, 11, 1)
    """
    return _PARSERS[kind if isinstance(kind, ValueType) else ValueType.parse(kind)](text)


def parse_integer(text: str) -> int:
    """Return the whole number that a text is.

    Raises:
        ValueError: It isn't one.
    """
    if len(text) > LONGEST_NUMBER or not re.fullmatch(r"\s*[+-]?\d+\s*", text, re.ASCII):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def parse_float(text: str) -> float:
    """Return the number that a text is.

    Raises:
        ValueError: It isn't one, or isn't finite.
    """
    number = parse_decimal(text)
    return float(number)


def parse_decimal(text: str) -> Decimal:
    """Return the exact number that a text is.

    Raises:
        ValueError: It isn't one.
    """
    if len(text) > LONGEST_NUMBER or not re.fullmatch(
        r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*", text, re.ASCII
    ):
        raise ValueError(f"{text!r} is not a number")
    return Decimal(text.strip())


def parse_boolean(text: str) -> bool:
    """Return the truth value that a text is: true or false, yes or no, in any case.

    Raises:
        ValueError: It isn't one.
    """
    found = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(
        text.strip().lower()
    )
    if found is None:
        raise ValueError(f"{text!r} is neither true nor false")
    return found


def parse_date(text: str) -> date:
    """Return the date of an ISO 8601 text; of a date and time, its date.

    Raises:
        ValueError: The text isn't a date.
    """
    return _parts(text, "a date such as 2022-11-01")[0]


def parse_datetime(text: str) -> datetime:
    """Return the local date and time of an ISO 8601 text without offset; a date alone is its midnight.

    Raises:
        ValueError: The text isn't one, or has an offset.
    """
    day, found = _parts(text, "a local date and time such as 2022-11-01T06:00:00")
    if found["zone"]:
        raise ValueError(f"{text!r} has an offset, so it is no local date and time")
    return _at(day, found["time"])


def parse_timestamp(text: str) -> datetime:
    """Return the instant of an ISO 8601 text, in UTC; without offset it is in UTC.

    Raises:
        ValueError: The text isn't a date and time.
    """
    day, found = _parts(text, "a timestamp such as 2022-11-01T06:00:00Z")
    zone = (found["zone"] or "Z").upper()
    if zone != "Z" and len(zone) == 3:
        zone += ":00"
    offset = "+00:00" if zone == "Z" else zone
    return datetime.fromisoformat(_at(day, found["time"]).isoformat() + offset).astimezone(UTC)


def _parts(text: str, wanted: str) -> tuple[date, Mapping[str, str | None]]:
    found = ISO_DATETIME.fullmatch(text.strip()) if len(text) <= LONGEST_NUMBER else None
    if found is None:
        raise ValueError(f"{text!r} is not {wanted}")
    try:
        return date.fromisoformat(found["date"]), found.groupdict()
    except ValueError as error:
        raise ValueError(f"{text!r} is not {wanted}: {error}") from None


def _at(day: date, time: str | None) -> datetime:
    clock, _, fraction = (time or "00:00").partition(".")
    moment = datetime.fromisoformat(f"{day.isoformat()}T{clock}")
    return moment + timedelta(microseconds=int(fraction[:6].ljust(6, "0"))) if fraction else moment


_PARSERS: Mapping[ValueType, Callable[[str], Value]] = {
    ValueType.STRING: str,
    ValueType.INTEGER: parse_integer,
    ValueType.FLOAT: parse_float,
    ValueType.DECIMAL: parse_decimal,
    ValueType.BOOLEAN: parse_boolean,
    ValueType.DATE: parse_date,
    ValueType.TIMESTAMP: parse_timestamp,
    ValueType.DURATION: Duration.parse,
}


def render_value(value: object) -> str:
    """Return a value as text, as Flowman writes it.

    Dates are ISO 8601; a local time leaves out seconds of zero (`2022-11-01T06:00`), a timestamp is in UTC,
    without zone and with a fraction (`2022-11-01T06:00:00.0`).

    Example:
        >>> render_value(date(2022, 11, 1)), render_value(True), render_value(None)
        ('2022-11-01', 'true', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return _render_timestamp(value) if value.tzinfo else _render_local(value)
    return str(value)


def _render_timestamp(moment: datetime) -> str:
    utc = moment.astimezone(UTC)
    fraction = f"{utc.microsecond:06d}".rstrip("0") or "0"
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{fraction}" if utc.year >= 1000 else utc.replace(tzinfo=None).isoformat()


def _render_local(moment: datetime) -> str:
    if moment.microsecond:
        return moment.isoformat(timespec="microseconds" if moment.microsecond % 1000 else "milliseconds")
    return moment.isoformat(timespec="seconds" if moment.second else "minutes")
