"""Everything that an expression can call: Flowman's helpers and the methods of the values they give.

Calls go by these tables only, never by Python's attributes, so an expression reaches nothing that isn't
listed here. What a helper needs from outside is given to it by `Surroundings`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from typing import Any, TypeAlias

from lakewright.errors import SpecError
from lakewright.spec import values
from lakewright.spec.jsonpath import json_path
from lakewright.spec.near import suggestion
from lakewright.spec.patterns import DAYS, MONTHS, format_moment
from lakewright.spec.secrets import is_secret_name
from lakewright.spec.values import Duration, render_value

__all__ = ["NAMESPACES", "Namespace", "Surroundings", "call", "read_property"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What helpers may ask of the world; each part is given by whoever loads the project.

    Attributes:
        environ: The process's environment.
        clock: Tells the present instant, in UTC; None where expressions may not ask.
        read_file: Reads a file's text; None where expressions may not.
        secrets: Values that expressions took from the environment or files and that must not be shown;
            grows while expressions are evaluated.
    """

    environ: Mapping[str, str] = field(default_factory=dict)
    clock: Callable[[], datetime] | None = None
    read_file: Callable[[str], str] | None = None
    secrets: set[str] = field(default_factory=set)

    def now(self) -> datetime:
        """Return the present instant in UTC.

        Raises:
            SpecError: No clock was given.
        """
        if self.clock is None:
            raise SpecError.of("an expression asks for the present time, which isn't known here")
        return self.clock().astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Namespace:
    """An object of expressions that holds functions or properties, such as `LocalDate` or `project`."""

    name: str
    functions: Mapping[str, Function] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Function:
    """A function with the number of arguments it takes; `is_worldly` ones get the surroundings first."""

    call: Callable[..., Any]
    least: int
    most: int
    is_worldly: bool = False

    @classmethod
    def of(cls, function: Callable[..., Any], *, is_worldly: bool = False) -> Function:
        """Return the function with the number of its arguments."""
        parameters = list(inspect.signature(function).parameters.values())[1 if is_worldly else 0 :]
        least = sum(parameter.default is inspect.Parameter.empty for parameter in parameters)
        return cls(function, least, len(parameters), is_worldly)


Functions: TypeAlias = Mapping[str, Function]


def call(target: object, method: str, arguments: tuple[object, ...], surroundings: Surroundings) -> object:
    """Return what a method of a value, or a function of a helper, gives.

    Raises:
        SpecError: There is no such method, or the arguments don't suit it.
    """
    table = _table(target)
    function = table.get(method)
    where = f"{target.name}.{method}" if isinstance(target, Namespace) else f"{method} of {_kind(target)}"
    if function is None:
        raise SpecError.of(f"there is no {where} in expressions", remedy=suggestion(method, table))
    own = len(arguments) if isinstance(target, Namespace) else len(arguments) + 1
    if not function.least <= own <= function.most:
        raise SpecError.of(f"{where} doesn't take {len(arguments)} arguments")
    try:
        given = arguments if isinstance(target, Namespace) else (target, *arguments)
        return function.call(surroundings, *given) if function.is_worldly else function.call(*given)
    except (ValueError, OverflowError, ArithmeticError, OSError) as error:
        raise SpecError.of(f"{where}: {error}") from error


def read_property(target: object, name: str, surroundings: Surroundings) -> object:
    """Return a property of a value; `$date.year` is `$date.getYear()`, as in Velocity.

    Raises:
        SpecError: The value has no such property.
    """
    if isinstance(target, Namespace) and name in target.properties:
        return target.properties[name]
    getter = f"get{name[:1].upper()}{name[1:]}"
    if not isinstance(target, Namespace) and getter in _table(target):
        return call(target, getter, (), surroundings)
    known = target.properties if isinstance(target, Namespace) else ()
    raise SpecError.of(
        f"{_kind(target)} has no property {name!r}",
        remedy=suggestion(name, known) or f"Write ${{name}}.{name} if the text shall follow the value.",
    )


def _kind(target: object) -> str:
    if isinstance(target, Namespace):
        return repr(target.name)
    return next((name for kind, name, _ in _METHODS if isinstance(target, kind)), type(target).__name__)


def _table(target: object) -> Functions:
    if isinstance(target, Namespace):
        return target.functions
    return next((table for kind, _, table in _METHODS if isinstance(target, kind)), {})


def _text(value: object) -> str:
    return render_value(value)


def _whole(value: object) -> int:
    number = (
        value
        if isinstance(value, int) and not isinstance(value, bool)
        else values.parse_integer(_text(value))
    )
    if abs(number) > 10**15:
        raise ValueError(f"{number} is too large a number here")
    return number


def _date(value: object) -> date:
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else values.parse_date(_text(value))


def _local(value: object) -> datetime:
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, date):
        return datetime.combine(value, time.min)
    return values.parse_datetime(_text(value))


def _timestamp(value: object) -> datetime:
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime.combine(value, time.min, UTC)
    return values.parse_timestamp(_text(value))


def _moment(value: object) -> date:
    """Return what can be formatted: the value itself, else the most exact that its text gives."""
    if isinstance(value, date):
        return value
    text = _text(value)
    return values.parse_date(text) if len(text.strip()) <= 10 else _timestamp(text)


def _duration(value: object) -> Duration:
    return value if isinstance(value, Duration) else Duration.parse(_text(value))


def _exact(value: object) -> Duration:
    """Return a duration in exact time, as Java's `Duration` has it: a day is 24 hours."""
    duration = _duration(value)
    if duration.months:
        raise ValueError(f"{duration} has months; use Period for those")
    return Duration(microseconds=duration.microseconds + duration.days * values.SECONDS_A_DAY * 1_000_000)


def _calendar(value: object) -> Duration:
    """Return a duration in months and days, as Java's `Period` has it."""
    duration = _duration(value)
    if duration.microseconds:
        raise ValueError(f"{duration} has hours or less; use Duration for those")
    return duration


def _between(start: object, end: object) -> Duration:
    return Duration(microseconds=(_timestamp(end) - _timestamp(start)) // timedelta(microseconds=1))


def _total_seconds(duration: Duration) -> int:
    return _exact(duration).microseconds // 1_000_000


_UNITS: Mapping[str, Duration] = {
    "Years": Duration(months=12),
    "Months": Duration(months=1),
    "Weeks": Duration(days=7),
    "Days": Duration(days=1),
    "Hours": Duration(microseconds=3_600_000_000),
    "Minutes": Duration(microseconds=60_000_000),
    "Seconds": Duration(microseconds=1_000_000),
    "Millis": Duration(microseconds=1_000),
}
_DATE_UNITS = ("Years", "Months", "Weeks", "Days")
_TIME_UNITS = ("Hours", "Minutes", "Seconds")


def _moving(
    prefix: str, units: Iterable[str], read: Callable[[object], Any], sign: int = 1
) -> dict[str, Callable[[object, object], object]]:
    """Return functions such as `plusDays(moment, count)` for each unit."""

    def mover(unit: Duration) -> Callable[[object, object], object]:
        return lambda value, count: (unit * (sign * _whole(count))).after(read(value))

    return {f"{prefix}{name}": mover(_UNITS[name]) for name in units}


def _lengths(units: Iterable[str], *, is_exact: bool) -> dict[str, Callable[[object], object]]:
    """Return functions such as `ofDays(count)` for each unit."""

    def maker(unit: Duration) -> Callable[[object], object]:
        return lambda count: (_exact(unit) if is_exact else unit) * _whole(count)

    return {f"of{name}": maker(_UNITS[name]) for name in units}


def _functions(
    *tables: Mapping[str, Callable[..., Any]], worldly: Mapping[str, Callable[..., Any]] | None = None
) -> Functions:
    found = {name: Function.of(function) for table in tables for name, function in table.items()}
    return found | {
        name: Function.of(function, is_worldly=True) for name, function in (worldly or {}).items()
    }


def _getenv(surroundings: Surroundings, name: object, default: object = "") -> object:
    key = _text(name)
    found = surroundings.environ.get(key)
    if found and is_secret_name(key):
        surroundings.secrets.add(found)
    return default if found is None else found


def _get_property(surroundings: Surroundings, name: object, default: object = "") -> object:
    variables = {"user.home": "HOME", "user.name": "USER"}
    return surroundings.environ.get(variables.get(_text(name), ""), default)


def _read_file(surroundings: Surroundings, path: object) -> str:
    if surroundings.read_file is None:
        raise SpecError.of("an expression reads a file, which isn't possible here")
    text = surroundings.read_file(_text(path))
    if text.strip():
        surroundings.secrets.update((text, text.strip()))
    return text


_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-*_")
_PATH_UNSAFE = frozenset("\"#%'*/:=?\\\x7f{[]^") | frozenset(chr(code) for code in range(1, 32))


def _url_encode(value: object) -> str:
    return "".join(
        chr(byte) if byte in _UNRESERVED else "+" if byte == 32 else f"%{byte:02X}"
        for byte in _text(value).encode()
    )


def _url_decode(value: object) -> str:
    def decoded(found: re.Match[str]) -> str:
        return bytes.fromhex(found.group().replace("%", "")).decode(errors="replace")

    return re.sub(r"(?:%[0-9A-Fa-f]{2})+", decoded, _text(value).replace("+", " "))


def _escape_path(value: object) -> str:
    return "".join(f"%{ord(sign):02X}" if sign in _PATH_UNSAFE else sign for sign in _text(value))


def _encode_partition(value: object) -> str:
    """Return a value as the name of a partition's folder; `*` stays, so that patterns can be written."""
    if value == "*":
        return "*"
    if isinstance(value, datetime):
        return _escape_path(format_moment(value, "yyyy-MM-dd HH:mm:ss"))
    return _escape_path(value)


def _concat(
    first: object, second: object, third: object = "", fourth: object = "", fifth: object = ""
) -> str:
    return "".join(_text(part) for part in (first, second, third, fourth, fifth))


NAMESPACES: Mapping[str, Namespace] = {
    name: Namespace(name, functions)
    for name, functions in {
        "LocalDate": _functions(
            {
                "parse": _date,
                "valueOf": _date,
                "format": lambda value, pattern: format_moment(_date(value), _text(pattern)),
            },
            _moving("add", _DATE_UNITS, _date),
            worldly={"now": lambda world: world.now().date(), "today": lambda world: world.now().date()},
        ),
        "LocalDateTime": _functions(
            {
                "parse": _local,
                "valueOf": _local,
                "ofEpochSeconds": lambda epoch: datetime.fromtimestamp(_whole(epoch), UTC).replace(
                    tzinfo=None
                ),
                "format": lambda value, pattern: format_moment(_local(value), _text(pattern)),
                "add": lambda value, duration: _exact(duration).after(_local(value)),
                "subtract": lambda value, duration: (-_exact(duration)).after(_local(value)),
            },
            _moving("add", (*_DATE_UNITS, *_TIME_UNITS), _local),
            worldly={"now": lambda world: world.now().replace(tzinfo=None)},
        ),
        "Timestamp": _functions(
            {
                "parse": _timestamp,
                "valueOf": _timestamp,
                "ofEpochSeconds": lambda epoch: datetime.fromtimestamp(_whole(epoch), UTC),
                "toEpochSeconds": lambda value: int(_timestamp(value).timestamp()),
                "format": lambda value, pattern: format_moment(_timestamp(value), _text(pattern)),
                "add": lambda value, duration: _duration(duration).after(_timestamp(value)),
                "subtract": lambda value, duration: (-_duration(duration)).after(_timestamp(value)),
            },
            worldly={"now": lambda world: world.now()},
        ),
        "Duration": _functions(
            {"parse": _exact, "valueOf": _exact, "between": _between},
            _lengths(("Days", "Hours", "Minutes", "Seconds", "Millis"), is_exact=True),
        ),
        "Period": _functions(
            {"parse": _calendar, "valueOf": _calendar}, _lengths(_DATE_UNITS, is_exact=False)
        ),
        "Integer": _functions(dict.fromkeys(("parse", "valueOf"), _whole)),
        "Float": _functions(
            dict.fromkeys(("parse", "valueOf"), lambda value: values.parse_float(_text(value)))
        ),
        "Boolean": _functions(
            dict.fromkeys(("parse", "valueOf"), lambda value: _text(value).strip().lower() == "true")
        ),
        "String": _functions(
            {
                "concat": _concat,
                "urlEncode": _url_encode,
                "escapePathName": _escape_path,
                "partitionEncode": _encode_partition,
            }
        ),
        "URL": _functions({"encode": _url_encode, "decode": _url_decode}),
        "JSON": _functions({"path": lambda text, path: json_path(_text(text), _text(path))}),
        "File": _functions(worldly={"read": _read_file}),
        "System": _functions(worldly={"getenv": _getenv, "getProperty": _get_property}),
    }.items()
}
"""The helpers by name."""


def _same(value: object) -> object:
    return value


_DATE_METHODS: Mapping[str, Callable[..., Any]] = {
    **_moving("plus", _DATE_UNITS, _same),
    **_moving("minus", _DATE_UNITS, _same, -1),
    "plus": lambda moment, duration: _duration(duration).after(moment),
    "minus": lambda moment, duration: (-_duration(duration)).after(moment),
    "getYear": lambda moment: moment.year,
    "getMonthValue": lambda moment: moment.month,
    "getMonth": lambda moment: MONTHS[moment.month - 1].upper(),
    "getDayOfMonth": lambda moment: moment.day,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday,
    "getDayOfWeek": lambda moment: DAYS[moment.weekday()].upper(),
    "withYear": lambda moment, year: moment.replace(year=_whole(year)),
    "withMonth": lambda moment, month: moment.replace(month=_whole(month)),
    "withDayOfMonth": lambda moment, day: moment.replace(day=_whole(day)),
    "isBefore": lambda moment, other: _timestamp(moment) < _timestamp(other),
    "isAfter": lambda moment, other: _timestamp(moment) > _timestamp(other),
    "isEqual": lambda moment, other: _timestamp(moment) == _timestamp(other),
    "toLocalDate": _date,
    "toEpochDay": lambda moment: (_date(moment) - date(1970, 1, 1)).days,
    "atStartOfDay": lambda moment: datetime.combine(_date(moment), time.min),
    "format": lambda moment, pattern: format_moment(moment, _text(pattern)),
    "toString": _text,
}
_TIME_METHODS: Mapping[str, Callable[..., Any]] = {
    **_DATE_METHODS,
    **_moving("plus", _TIME_UNITS, _same),
    **_moving("minus", _TIME_UNITS, _same, -1),
    "getHour": lambda moment: moment.hour,
    "getMinute": lambda moment: moment.minute,
    "getSecond": lambda moment: moment.second,
    "toLocalDateTime": _local,
    "toTimestamp": _timestamp,
    "toEpochSeconds": lambda moment: int(_timestamp(moment).timestamp()),
}
_TEXT_METHODS: Mapping[str, Callable[..., Any]] = {
    "toUpperCase": lambda text: text.upper(),
    "toLowerCase": lambda text: text.lower(),
    "trim": lambda text: text.strip(),
    "length": len,
    "isEmpty": lambda text: not text,
    "concat": lambda text, other: text + _text(other),
    "contains": lambda text, other: _text(other) in text,
    "startsWith": lambda text, other: text.startswith(_text(other)),
    "endsWith": lambda text, other: text.endswith(_text(other)),
    "equals": lambda text, other: text == other,
    "indexOf": lambda text, other: text.find(_text(other)),
    "replace": lambda text, old, new: text.replace(_text(old), _text(new)) if _text(old) else text,
    "substring": lambda text, start, end=None: text[
        _index(start, text) : None if end is None else _index(end, text)
    ],
    "toString": _text,
}
_DURATION_METHODS: Mapping[str, Callable[..., Any]] = {
    "plus": lambda one, other: _sum(one, _duration(other)),
    "minus": lambda one, other: _sum(one, -_duration(other)),
    "multipliedBy": lambda duration, factor: duration * _whole(factor),
    "negated": lambda duration: -duration,
    "getSeconds": _total_seconds,
    "toSeconds": _total_seconds,
    "toMinutes": lambda duration: _total_seconds(duration) // 60,
    "toHours": lambda duration: _total_seconds(duration) // 3600,
    "toDays": lambda duration: _total_seconds(duration) // values.SECONDS_A_DAY,
    "toMillis": lambda duration: _exact(duration).microseconds // 1000,
    "getDays": lambda duration: duration.days,
    "getMonths": lambda duration: duration.months % 12,
    "getYears": lambda duration: duration.months // 12,
    "toTotalMonths": lambda duration: duration.months,
    "toString": _text,
}
_PATH_METHODS: Mapping[str, Callable[..., Any]] = {
    "getParent": lambda path: path.parent,
    "getAbsPath": _same,
    "getPath": _text,
    "getFilename": lambda path: path.name,
    "withName": lambda path, name: path.with_name(_text(name)),
    "withSuffix": lambda path, suffix: path.with_name(path.name + _text(suffix)),
    "toString": _text,
}


def _index(value: object, text: str) -> int:
    index = _whole(value)
    if not 0 <= index <= len(text):
        raise ValueError(f"position {index} is outside of a text of {len(text)} characters")
    return index


def _sum(one: Duration, other: Duration) -> Duration:
    return Duration(one.months + other.months, one.days + other.days, one.microseconds + other.microseconds)


_METHODS: tuple[tuple[type | tuple[type, ...], str, Functions], ...] = (
    (datetime, "a date and time", _functions(_TIME_METHODS)),
    (date, "a date", _functions(_DATE_METHODS)),
    (Duration, "a duration", _functions(_DURATION_METHODS)),
    (str, "a text", _functions(_TEXT_METHODS)),
    (PurePath, "a path", _functions(_PATH_METHODS)),
    ((bool, int, float, Decimal), "a number", _functions({"toString": _text})),
)
