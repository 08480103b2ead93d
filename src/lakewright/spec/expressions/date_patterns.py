"""Formatting of dates and times with Java's patterns, such as `yyyy/MM/dd`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from itertools import groupby

LONGEST = 200

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def format_moment(moment: date, pattern: str) -> str:
    """Return a date, or a date and time, formatted with a pattern of Java's `DateTimeFormatter`.

    Raises:
        ValueError: The pattern has an unsupported letter, or needs the time of a date.

    Example:
        >>> format_moment(date(2022, 11, 1), "yyyy/MM/dd 'day' D")
        '2022/11/01 day 305'
    """
    if len(pattern) > LONGEST:
        raise ValueError(f"the pattern has more than {LONGEST} characters")
    pieces = pattern.replace("''", "\0").split("'")
    if len(pieces) % 2 == 0:
        raise ValueError(f"the pattern {pattern!r} lacks a closing quote")
    texts = [piece if index % 2 else _format(moment, piece, pattern) for index, piece in enumerate(pieces)]
    return "".join(texts).replace("\0", "'")


def _format(moment: date, piece: str, pattern: str) -> str:
    return "".join(
        _field(moment, letter, len(list(run)), pattern)
        if letter.isascii() and letter.isalpha()
        else "".join(run)
        for letter, run in groupby(piece)
    )


def _field(moment: date, letter: str, count: int, pattern: str) -> str:
    of_date = _DATE_FIELDS.get(letter)
    if of_date is not None:
        return of_date(moment, count)
    of_time = _TIME_FIELDS.get(letter)
    if of_time is None:
        raise ValueError(f"the letter {letter!r} of the pattern {pattern!r} is not supported")
    if not isinstance(moment, datetime):
        raise ValueError(f"the pattern {pattern!r} needs a time, but {moment} is a date")
    return of_time(moment, count)


def _padded(number: int, count: int) -> str:
    return str(number).zfill(count)


def _year(moment: date, count: int) -> str:
    return _padded(moment.year % 100, 2) if count == 2 else _padded(moment.year, count)


def _month(moment: date, count: int) -> str:
    return _named(MONTHS[moment.month - 1], moment.month, count)


def _named(name: str, number: int, count: int) -> str:
    if count <= 2:
        return _padded(number, count)
    return {3: name[:3], 4: name, 5: name[:1]}.get(count, name)


def _weekday(moment: date, count: int) -> str:
    name = DAYS[moment.weekday()]
    return name[:3] if count <= 3 else name


def _quarter(moment: date, count: int) -> str:
    number = (moment.month + 2) // 3
    return _padded(number, count) if count <= 2 else f"Q{number}"


def _offset(moment: datetime, letter: str, count: int) -> str:
    shift = moment.utcoffset()
    if shift is None:
        raise ValueError(f"{moment} has no time zone")
    minutes = int(shift.total_seconds()) // 60
    if minutes == 0 and letter == "X":
        return "Z"
    sign, hours, rest = ("-" if minutes < 0 else "+"), abs(minutes) // 60, abs(minutes) % 60
    if count == 1 and letter in "Xx" and not rest:
        return f"{sign}{hours:02d}"
    separator = ":" if count == 3 and letter in "Xx" else ""
    return f"{sign}{hours:02d}{separator}{rest:02d}"


_DATE_FIELDS: Mapping[str, Callable[[date, int], str]] = {
    "y": _year,
    "u": _year,
    "M": _month,
    "L": _month,
    "d": lambda moment, count: _padded(moment.day, count),
    "D": lambda moment, count: _padded(moment.timetuple().tm_yday, count),
    "E": _weekday,
    "Q": _quarter,
    "q": _quarter,
}
_TIME_FIELDS: Mapping[str, Callable[[datetime, int], str]] = {
    "H": lambda moment, count: _padded(moment.hour, count),
    "k": lambda moment, count: _padded(moment.hour or 24, count),
    "K": lambda moment, count: _padded(moment.hour % 12, count),
    "h": lambda moment, count: _padded(moment.hour % 12 or 12, count),
    "m": lambda moment, count: _padded(moment.minute, count),
    "s": lambda moment, count: _padded(moment.second, count),
    "S": lambda moment, count: f"{moment.microsecond:06d}".ljust(count, "0")[:count],
    "a": lambda moment, count: ("AM" if moment.hour < 12 else "PM") if count else "",
    "X": lambda moment, count: _offset(moment, "X", count),
    "x": lambda moment, count: _offset(moment, "x", count),
    "Z": lambda moment, count: _offset(moment, "Z", count),
}
