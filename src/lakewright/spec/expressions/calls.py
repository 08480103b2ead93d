"""Calls and properties in expressions, and the methods of values, with Java's names.

They are looked up in tables, here and in `namespaces.py`, never as Python attributes, so an expression has
access to nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from lakewright.errors import Fault, SpecError
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
from lakewright.spec.expressions.function import EvaluationContext, Function, Functions, Namespace, functions
from lakewright.spec.expressions.namespaces import NAMESPACES
from lakewright.spec.expressions.values import Duration
from lakewright.spec.suggestions import suggestion

__all__ = ["DEPENDS_ON_VALUE", "METHODS", "call", "call_function", "call_problem", "read_property"]


DEPENDS_ON_VALUE = "depends_on_value"
"""Detail of faults that other values of the same type may not have."""


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


def call(target: object, method: str, arguments: tuple[object, ...], context: EvaluationContext) -> object:
    """Return the result of a method of a value, or of a function of a helper.

    Raises:
        SpecError: There is no such method, or it does not accept the arguments.
    """
    table = _table(target)
    function = table.get(method)
    where = f"{target.name}.{method}" if isinstance(target, Namespace) else f"{method} of {_kind(target)}"
    if function is None:
        raise SpecError.of(f"there is no {where} in expressions", remedy=suggestion(method, table))
    if why := _count_problem(where, function, len(arguments), is_method=not isinstance(target, Namespace)):
        raise SpecError.of(why)
    try:
        given = arguments if isinstance(target, Namespace) else (target, *arguments)
        return function.call(context, *given) if function.needs_context else function.call(*given)
    except (ValueError, OverflowError, ArithmeticError, OSError) as error:
        raise SpecError([Fault(f"{where}: {error}", details={DEPENDS_ON_VALUE: True})]) from error


_FUNCTIONS = functions({"sql": values.quote_value})
"""Functions that belong to no helper; `expression.FUNCTION_NAMES` has their names."""


def call_function(name: str, arguments: tuple[object, ...]) -> object:
    """Return the result of a function that belongs to no helper.

    Raises:
        SpecError: It does not accept the arguments.
    """
    function = _FUNCTIONS[name]
    if why := _count_problem(name, function, len(arguments), is_method=False):
        raise SpecError.of(why)
    if any(isinstance(argument, Namespace) for argument in arguments):
        raise SpecError.of(f"{name} takes a value, not a helper")
    return function.call(*arguments)


def call_problem(helper: str | None, method: str, count: int) -> str | None:
    """Return why a call fails for every value of its arguments, or None if it may succeed.

    Args:
        helper: The helper of the function, or None for a method of a value of any type.
        method: The called method or function.
        count: The number of arguments.
    """
    tables = [NAMESPACES[helper].functions] if helper else [table for _, _, table in METHODS]
    where = f"{helper}.{method}" if helper else method
    found = [table[method] for table in tables if method in table]
    if not found:
        hint = suggestion(method, {name for table in tables for name in table}, shown=0)
        return f"there is no {where} in expressions{f' ({hint})' if hint else ''}"
    wrong = [_count_problem(where, function, count, is_method=helper is None) for function in found]
    return wrong[0] if all(wrong) else None


def _count_problem(where: str, function: Function, count: int, *, is_method: bool) -> str | None:
    """Return why a number of arguments is wrong, or None. The value that has the method does not count."""
    least, most = function.least - is_method, function.most - is_method
    if least <= count <= most:
        return None
    taken = str(most) if least == most else f"{least} to {most}"
    return f"{where} takes {taken} argument{'' if most == 1 else 's'}, not {count}"


def read_property(target: object, name: str, context: EvaluationContext, *, written: str = "name") -> object:
    """Return a property of a value. `$date.year` is `$date.getYear()`, as in Velocity.

    Args:
        target: The value.
        name: Name of the property.
        context: Context of a getter.
        written: The name of the value in the expression, for the error.

    Raises:
        SpecError: The value has no such property.
    """
    if isinstance(target, Namespace) and name in target.properties:
        return target.properties[name]
    getter = f"get{name[:1].upper()}{name[1:]}"
    if not isinstance(target, Namespace) and getter in _table(target):
        return call(target, getter, (), context)
    known = target.properties if isinstance(target, Namespace) else ()
    raise SpecError.of(
        f"{_kind(target)} has no property {name!r}",
        remedy=suggestion(name, known) or f"Write ${{{written}}}.{name} to put that text after the value.",
        details={"unknown_property": name},
    )


def _kind(target: object) -> str:
    if isinstance(target, Namespace):
        return repr(target.name)
    return next((name for kind, name, _ in METHODS if isinstance(target, kind)), type(target).__name__)


def _table(target: object) -> Functions:
    if isinstance(target, Namespace):
        return target.functions
    return next((table for kind, _, table in METHODS if isinstance(target, kind)), {})
