"""Values of parameters and expressions: their types, parsing and rendering.

A date is a `date`, a local date and time a `datetime` without time zone, a timestamp a `datetime` in UTC.
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

from lakewright.errors import UsageError
from lakewright.spec.suggestions import hint

Moment = TypeVar("Moment", bound=date)

LONGEST_NUMBER = 40
SECONDS_A_DAY = 86_400

ISO_DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?:(?P<years>[+-]?\d+)Y)?(?:(?P<months>[+-]?\d+)M)?(?:(?P<weeks>[+-]?\d+)W)?(?:(?P<days>[+-]?\d+)D)?"
    r"(?P<time>T(?:(?P<hours>[+-]?\d+)H)?(?:(?P<minutes>[+-]?\d+)M)?(?:(?P<seconds>[+-]?\d+(?:\.\d{1,6})?)S)?)?",
    re.IGNORECASE,
)
ISO_DATETIME = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?\s?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time: calendar months and days, and exact microseconds.

    Days and exact time stay separate as written: `P1D` is one day, `PT24H` is 24 hours. Without a time zone,
    as everywhere in a project, both have the same length.

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
            ValueError: The text is not such a duration.
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
        """Whether the duration is zero."""
        return not (self.months or self.days or self.microseconds)

    @property
    def exact(self) -> timedelta:
        """The duration as days and time.

        Raises:
            ValueError: The duration has months, whose length depends on the date.
        """
        if self.months:
            raise ValueError(f"{self} has months, whose length depends on the date")
        return timedelta(days=self.days, microseconds=self.microseconds)

    def __neg__(self) -> Duration:
        return Duration(-self.months, -self.days, -self.microseconds)

    def __mul__(self, factor: int) -> Duration:
        """Return the duration times `factor`. Months stay months."""
        return Duration(self.months * factor, self.days * factor, self.microseconds * factor)

    def after(self, start: Moment) -> Moment:
        """Return `start` plus the duration. If the month lacks the day, the result is its last day.

        Raises:
            ValueError: `start` is a date, and the duration is not a whole number of days.
            OverflowError: The result is outside the years 1 to 9999.
        """
        moved = _plus_months(start, self.months)
        if isinstance(moved, datetime):
            return moved + timedelta(days=self.days, microseconds=self.microseconds)
        days, rest = divmod(self.microseconds, SECONDS_A_DAY * 1_000_000)
        if rest:
            raise ValueError(f"{self} is not a whole number of days, so it cannot be added to a date")
        return moved + timedelta(days=self.days + days)

    def __str__(self) -> str:
        """Return the ISO 8601 text, with exact time in hours, minutes and seconds."""
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
"""The type of an expression's value, apart from namespaces and paths."""


def _texts(*parts: tuple[int, str]) -> str:
    return "".join(f"{number}{unit}" for number, unit in parts if number)


def _split(number: int, size: int) -> tuple[int, int]:
    """Return quotient and remainder, both with the sign of `number`."""
    quotient, rest = divmod(abs(number), size)
    return (quotient, rest) if number >= 0 else (-quotient, -rest)


def _plus_months(start: Moment, months: int) -> Moment:
    if not months:
        return start
    years, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if not 1 <= years <= 9999:
        raise OverflowError(f"{start} and {months} months is outside the years 1 to 9999")
    return start.replace(year=years, month=month + 1, day=min(start.day, monthrange(years, month + 1)[1]))


class ValueType(StrEnum):
    """The type of a parameter or a partition column."""

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
        """Return the type that a text names, ignoring case. Type names of SQL are valid too.

        Raises:
            ValueError: There is no such type.

        Example:
            >>> ValueType.parse("BIGINT").value
            'integer'
        """
        name = text.strip().lower().partition("(")[0]
        found = _TYPE_NAMES.get(name)
        if found is None:
            raise ValueError(f"no value type {text!r}; {hint(text, cls)}")
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
    """Return the value of a text in a type.

    A timestamp without offset is in UTC.

    Raises:
        ValueError: The text is not a value of the type, or there is no such type.

    Example:
        >>> parse_value("date", "2022-11-01")
        datetime.date(2022, 11, 1)
    """
    return _PARSERS[kind if isinstance(kind, ValueType) else ValueType.parse(kind)](text)


def parse_integer(text: str) -> int:
    """Return a text as a whole number.

    Raises:
        ValueError: The text is not a whole number.
    """
    if len(text) > LONGEST_NUMBER or not re.fullmatch(r"\s*[+-]?\d+\s*", text, re.ASCII):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def parse_float(text: str) -> float:
    """Return a text as a floating-point number.

    Raises:
        ValueError: The text is not a finite number.
    """
    return float(parse_decimal(text))


def parse_decimal(text: str) -> Decimal:
    """Return a text as an exact number.

    Raises:
        ValueError: The text is not a number.
    """
    if len(text) > LONGEST_NUMBER or not re.fullmatch(
        r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*", text, re.ASCII
    ):
        raise ValueError(f"{text!r} is not a number")
    return Decimal(text.strip())


def as_flag(declared: object) -> bool | None:
    """Return what is declared as a boolean, ignoring case, or None if it is none.

    Example:
        >>> as_flag("yes"), as_flag("Off"), as_flag("perhaps")
        (True, False, None)
    """
    word = str(declared).strip().lower()
    return True if word in _TRUE else False if word in _FALSE else None


_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def parse_boolean(text: str) -> bool:
    """Return a text as a boolean: true or false, yes or no, on or off, 1 or 0, ignoring case.

    Raises:
        ValueError: The text is not a boolean.
    """
    found = as_flag(text)
    if found is None:
        raise ValueError(f"{text!r} is neither true nor false")
    return found


def parse_date(text: str) -> date:
    """Return the date of an ISO 8601 date, or date and time.

    Raises:
        ValueError: The text is neither.
    """
    return _moment(text, "a date such as 2022-11-01").date()


def parse_datetime(text: str) -> datetime:
    """Return the local date and time of an ISO 8601 text without offset. A date alone means its midnight.

    Raises:
        ValueError: The text is not a date and time, or has an offset.
    """
    found = _moment(text, "a local date and time such as 2022-11-01T06:00:00")
    if found.tzinfo:
        raise ValueError(f"{text!r} has an offset, so it is not a local date and time")
    return found


def parse_timestamp(text: str) -> datetime:
    """Return the timestamp of an ISO 8601 text, converted to UTC. Without offset, the text is in UTC.

    Raises:
        ValueError: The text is not a date and time.
    """
    found = _moment(text, "a timestamp such as 2022-11-01T06:00:00Z")
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _moment(text: str, wanted: str) -> datetime:
    if len(text) > LONGEST_NUMBER or ISO_DATETIME.fullmatch(text.strip()) is None:
        raise ValueError(f"{text!r} is not {wanted}")
    try:
        # `fromisoformat` takes no space before an offset, and no letters in lower case.
        return datetime.fromisoformat(re.sub(r"\s(?=Z|[+-])", "", text.strip().upper()))
    except ValueError as error:
        raise ValueError(f"{text!r} is not {wanted}: {error}") from None


_PARSERS: Mapping[ValueType, Callable[[str], Value]] = {
    ValueType.STRING: lambda text: text,  # unlike `str`, it keeps a `TimestampText`
    ValueType.INTEGER: parse_integer,
    ValueType.FLOAT: parse_float,
    ValueType.DECIMAL: parse_decimal,
    ValueType.BOOLEAN: parse_boolean,
    ValueType.DATE: parse_date,
    ValueType.TIMESTAMP: parse_timestamp,
    ValueType.DURATION: Duration.parse,
}


def render_value(value: object) -> str:
    """Return a value as text, in Flowman's format.

    Dates are in ISO 8601. A local date and time omits seconds of zero (`2022-11-01T06:00`). A timestamp is in
    UTC, without time zone and with a fraction (`2022-11-01T06:00:00.0`).

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


def quote_value(value: object) -> str:
    r"""Return a value as a literal of SQL: text in quotes, numbers and booleans as they are, dates typed.

    Quotes inside a text are doubled, as Spark and databases read them. Backslashes are doubled, too, because
    Spark reads them as escapes.

    Example:
        >>> quote_value("it's"), quote_value(date(2022, 11, 1)), quote_value(3), quote_value(None)
        ("'it''s'", "DATE '2022-11-01'", '3', 'NULL')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | float | Decimal):
        return render_value(value)
    if isinstance(value, datetime):
        kind, zone = ("TIMESTAMP", "Z") if value.tzinfo else ("TIMESTAMP_NTZ", "")
        return f"{kind} '{value.replace(tzinfo=None).isoformat(sep=' ')}{zone}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    text = render_value(value).replace("\\", "\\\\").replace("'", "''")
    return f"'{text}'"


def _render_timestamp(moment: datetime) -> str:
    utc = moment.astimezone(UTC)
    fraction = f"{utc.microsecond:06d}".rstrip("0") or "0"
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{fraction}" if utc.year >= 1000 else utc.replace(tzinfo=None).isoformat()


def _render_local(moment: datetime) -> str:
    if moment.microsecond:
        return moment.isoformat(timespec="microseconds" if moment.microsecond % 1000 else "milliseconds")
    return moment.isoformat(timespec="seconds" if moment.second else "minutes")


class TimestampText(str):
    """A timestamp that was rendered alone: `2022-11-01T06:00:00.0`, in UTC."""

    __slots__ = ()


def render_alone(value: object) -> str:
    """Return the text of a value that no other text surrounds; of a timestamp, a `TimestampText`."""
    if isinstance(value, TimestampText):
        return value
    text = render_value(value)
    return TimestampText(text) if isinstance(value, datetime) and value.tzinfo else text


def with_offset(text: str) -> str:
    """Return a text with the offset that a rendered timestamp lacks; other texts are unchanged.

    Example:
        >>> from datetime import UTC
        >>> with_offset(render_alone(datetime(2022, 11, 1, 6, tzinfo=UTC))), with_offset("2022-11-01T06:00")
        ('2022-11-01T06:00:00.0Z', '2022-11-01T06:00')
    """
    return f"{text}Z" if isinstance(text, TimestampText) else text


_SHORT = re.compile(r"(\d{1,9})\s*(ms|s|m|h|d|w)", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": SECONDS_A_DAY, "w": 7 * SECONDS_A_DAY}


def _parse_length(text: str) -> Duration:
    """Return the duration of a text such as `500ms`, `12h` or `P3M`."""
    short = _SHORT.fullmatch(text.strip())
    if short is None:
        return Duration.parse(text)
    number, unit = int(short[1]), short[2].lower()
    return Duration(microseconds=number * (1_000 if unit == "ms" else _SECONDS[unit] * 1_000_000))


def before_now(now: datetime, age: str) -> datetime:
    """Return the instant that lies `age` before `now`.

    Example:
        >>> before_now(datetime(2022, 3, 31), "2d"), before_now(datetime(2022, 3, 31), "P1M")
        (datetime.datetime(2022, 3, 29, 0, 0), datetime.datetime(2022, 2, 28, 0, 0))

    Raises:
        UsageError: The text is not an age, or the result lies before year 1.
    """
    try:
        found = _parse_length(age)
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
    try:
        found = _parse_length(text).exact
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is not a length of time such as 2s, 10m or PT1H") from error
    if found < timedelta():
        raise ValueError(f"{text!r} is negative")
    return found
