"""The methods of values in expressions, with Java's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from lakewright.spec.expressions import values
from lakewright.spec.expressions.conversions import (
    DATE_UNITS,
    TIME_UNITS,
    as_date,
    as_duration,
    as_exact,
    as_local,
    as_text,
    as_timestamp,
    as_whole,
    moving,
    total_seconds,
)
from lakewright.spec.expressions.date_patterns import DAYS, MONTHS, format_moment
from lakewright.spec.expressions.function import Functions, functions
from lakewright.spec.expressions.values import Duration

__all__ = ["METHODS"]


def _same(value: object) -> object:
    return value


_DATE_METHODS: Mapping[str, Callable[..., Any]] = {
    **moving("plus", DATE_UNITS, _same),
    **moving("minus", DATE_UNITS, _same, -1),
    "plus": lambda moment, duration: as_duration(duration).after(moment),
    "minus": lambda moment, duration: (-as_duration(duration)).after(moment),
    "getYear": lambda moment: moment.year,
    "getMonthValue": lambda moment: moment.month,
    "getMonth": lambda moment: MONTHS[moment.month - 1].upper(),
    "getDayOfMonth": lambda moment: moment.day,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday,
    "getDayOfWeek": lambda moment: DAYS[moment.weekday()].upper(),
    "withYear": lambda moment, year: moment.replace(year=as_whole(year)),
    "withMonth": lambda moment, month: moment.replace(month=as_whole(month)),
    "withDayOfMonth": lambda moment, day: moment.replace(day=as_whole(day)),
    "isBefore": lambda moment, other: as_timestamp(moment) < as_timestamp(other),
    "isAfter": lambda moment, other: as_timestamp(moment) > as_timestamp(other),
    "isEqual": lambda moment, other: as_timestamp(moment) == as_timestamp(other),
    "toLocalDate": as_date,
    "toEpochDay": lambda moment: (as_date(moment) - date(1970, 1, 1)).days,
    "atStartOfDay": lambda moment: datetime.combine(as_date(moment), time.min),
    "format": lambda moment, pattern: format_moment(moment, as_text(pattern)),
    "toString": as_text,
}
_TIME_METHODS: Mapping[str, Callable[..., Any]] = {
    **_DATE_METHODS,
    **moving("plus", TIME_UNITS, _same),
    **moving("minus", TIME_UNITS, _same, -1),
    "getHour": lambda moment: moment.hour,
    "getMinute": lambda moment: moment.minute,
    "getSecond": lambda moment: moment.second,
    "toLocalDateTime": as_local,
    "toTimestamp": as_timestamp,
    "toEpochSeconds": lambda moment: int(as_timestamp(moment).timestamp()),
}
_TEXT_METHODS: Mapping[str, Callable[..., Any]] = {
    "toUpperCase": lambda text: text.upper(),
    "toLowerCase": lambda text: text.lower(),
    "trim": lambda text: text.strip(),
    "length": len,
    "isEmpty": lambda text: not text,
    "concat": lambda text, other: text + as_text(other),
    "contains": lambda text, other: as_text(other) in text,
    "startsWith": lambda text, other: text.startswith(as_text(other)),
    "endsWith": lambda text, other: text.endswith(as_text(other)),
    "equals": lambda text, other: text == other,
    "indexOf": lambda text, other: text.find(as_text(other)),
    "replace": lambda text, old, new: text.replace(as_text(old), as_text(new)) if as_text(old) else text,
    "substring": lambda text, start, end=None: text[
        _index(start, text) : None if end is None else _index(end, text)
    ],
    "toString": as_text,
}
_DURATION_METHODS: Mapping[str, Callable[..., Any]] = {
    "plus": lambda one, other: _sum(one, as_duration(other)),
    "minus": lambda one, other: _sum(one, -as_duration(other)),
    "multipliedBy": lambda duration, factor: duration * as_whole(factor),
    "negated": lambda duration: -duration,
    "getSeconds": total_seconds,
    "toSeconds": total_seconds,
    "toMinutes": lambda duration: total_seconds(duration) // 60,
    "toHours": lambda duration: total_seconds(duration) // 3600,
    "toDays": lambda duration: total_seconds(duration) // values.SECONDS_A_DAY,
    "toMillis": lambda duration: as_exact(duration).microseconds // 1000,
    "getDays": lambda duration: duration.days,
    "getMonths": lambda duration: duration.months % 12,
    "getYears": lambda duration: duration.months // 12,
    "toTotalMonths": lambda duration: duration.months,
    "toString": as_text,
}
_PATH_METHODS: Mapping[str, Callable[..., Any]] = {
    "getParent": lambda path: path.parent,
    "getAbsPath": _same,
    "getPath": as_text,
    "getFilename": lambda path: path.name,
    "withName": lambda path, name: path.with_name(as_text(name)),
    "withSuffix": lambda path, suffix: path.with_name(path.name + as_text(suffix)),
    "toString": as_text,
}


def _index(value: object, text: str) -> int:
    index = as_whole(value)
    if not 0 <= index <= len(text):
        raise ValueError(f"position {index} is outside the text of {len(text)} characters")
    return index


def _sum(one: Duration, other: Duration) -> Duration:
    return Duration(one.months + other.months, one.days + other.days, one.microseconds + other.microseconds)


METHODS: tuple[tuple[type | tuple[type, ...], str, Functions], ...] = (
    (datetime, "a date and time", functions(_TIME_METHODS)),
    (date, "a date", functions(_DATE_METHODS)),
    (Duration, "a duration", functions(_DURATION_METHODS)),
    (str, "a text", functions(_TEXT_METHODS)),
    (PurePath, "a path", functions(_PATH_METHODS)),
    ((bool, int, float, Decimal), "a number", functions({"toString": as_text})),
)
"""Types of values, with name and methods. The first type that matches a value applies."""
