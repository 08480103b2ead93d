"""The functions that expressions can call, each declared once, with Flowman's and Java's names.

Evaluation, checks, suggestions and the reference page read `FUNCTIONS`. Nothing else can be called, and no
name is looked up as a Python attribute, so an expression has access to nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from lakewright.errors import SpecError
from lakewright.spec.expressions import values
from lakewright.spec.expressions.date_patterns import DAYS, MONTHS, format_moment
from lakewright.spec.expressions.secrets import is_secret_name
from lakewright.spec.expressions.values import Duration, render_value


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """The access of helpers to environment, clock and files, which the caller of the loader provides.

    Attributes:
        environ: The environment variables.
        clock: Returns the current time in UTC, or None if expressions may not use it.
        read_file: Returns the text of a file, or None if expressions may not read files.
        secrets: Secret values that expressions have read from environment variables and files. Grows while
            expressions are evaluated.
        defaults: Texts that stood in for environment variables that aren't set. They are written in a file
            of the project, so that they are no secrets. Grows likewise.
        zone: The time zone whose date and time `LocalDate` and `LocalDateTime` return.
    """

    environ: Mapping[str, str] = field(default_factory=dict)
    clock: Callable[[], datetime] | None = None
    read_file: Callable[[str], str] | None = None
    secrets: set[str] = field(default_factory=set)
    defaults: set[str] = field(default_factory=set)
    zone: tzinfo = UTC

    def now(self) -> datetime:
        """Return the current time in UTC.

        Raises:
            SpecError: There is no clock.
        """
        if self.clock is None:
            raise SpecError.of("an expression uses the current time, which is not available here")
        return self.clock().astimezone(UTC)

    def local_now(self) -> datetime:
        """Return the current date and time in the context's time zone, without the zone.

        Raises:
            SpecError: There is no clock.
        """
        return self.now().astimezone(self.zone).replace(tzinfo=None)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of arguments and results.

    Attributes:
        word: What the reference calls it.
        convert: Returns an argument as a value of the kind: most kinds also accept a text that names one.
    """

    word: str
    convert: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Function:
    """A function that expressions can call.

    Attributes:
        receiver: The helper, such as `LocalDate`, or what a value of the method's type is called.
        name: Its name.
        parameters: The kinds of its arguments, without the value that has the method.
        result: The kind of its result.
        call: Gets the value that has the method, and the arguments as values of their kinds.
        optional: How many of the last arguments may be left out.
        uses_context: Whether the context is passed first.
    """

    receiver: str
    name: str
    parameters: tuple[Kind, ...]
    result: Kind
    call: Callable[..., Any]
    optional: int = 0
    uses_context: bool = False

    def count_problem(self, where: str, count: int) -> str | None:
        """Return why a number of arguments is wrong, or None."""
        most = len(self.parameters)
        least = most - self.optional
        if least <= count <= most:
            return None
        taken = str(most) if least == most else f"{least} to {most}"
        return f"{where} takes {taken} argument{'' if most == 1 else 's'}, not {count}"


@dataclass(frozen=True, slots=True)
class Namespace:
    """An object with functions or properties, such as `LocalDate` or `project`."""

    name: str
    functions: Mapping[str, Function] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        # `$project` renders as the project's name, as in Flowman.
        return str(self.properties.get("name", self.name))


def _same(value: Any) -> Any:
    return value


def _no_helper(value: object) -> object:
    if isinstance(value, Namespace):
        raise SpecError.of(f"a value is expected, not the helper {value.name}")
    return value


def _as_whole(value: object) -> int:
    number = value if type(value) is int else values.parse_integer(render_value(value))
    if abs(number) > 10**15:
        raise ValueError(f"the number {number} is too large")
    return number


def _as_date(value: object) -> date:
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else values.parse_date(render_value(value))


def _as_local(value: object) -> datetime:
    """Return a value as local date and time. Timestamps are converted to UTC; dates become midnight."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, date):
        return datetime.combine(value, time.min)
    return values.parse_datetime(render_value(value))


def _as_timestamp(value: object) -> datetime:
    """Return a value as timestamp in UTC. A local date and time is taken to be in UTC."""
    if isinstance(value, date):
        return _as_local(value).replace(tzinfo=UTC)
    return values.parse_timestamp(render_value(value))


def _as_duration(value: object) -> Duration:
    return value if isinstance(value, Duration) else Duration.parse(render_value(value))


def _as_exact(value: object) -> Duration:
    """Return a duration in exact time, like Java's `Duration`. A day has 24 hours."""
    duration = _as_duration(value)
    if duration.months:
        raise ValueError(f"{duration} contains months; use Period instead")
    return Duration(microseconds=duration.exact // timedelta(microseconds=1))


def _as_calendar(value: object) -> Duration:
    """Return a duration in months and days, like Java's `Period`."""
    duration = _as_duration(value)
    if duration.microseconds:
        raise ValueError(f"{duration} contains time; use Duration instead")
    return duration


ANY = Kind("value", _same)
VALUE = Kind("value", _no_helper)
TEXT = Kind("text", render_value)
WHOLE = Kind("integer", _as_whole)
FLOAT = Kind("float", lambda value: values.parse_float(render_value(value)))
BOOLEAN = Kind("boolean", lambda value: render_value(value).strip().lower() == "true")
DATE = Kind("date", _as_date)
LOCAL = Kind("date and time", _as_local)
TIMESTAMP = Kind("timestamp", _as_timestamp)
DURATION = Kind("duration", _as_duration)
EXACT = Kind("duration", _as_exact)
PERIOD = Kind("period", _as_calendar)
PATH = Kind("path", _same)

VALUES: Mapping[str, type | tuple[type, ...]] = {
    "date and time": datetime,
    "date": date,
    "duration": Duration,
    "text": str,
    "path": PurePath,
    "number": (bool, int, float, Decimal),
}
"""Types of values with methods, by what they are called. The first type that matches a value applies."""

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
_OF_DATES = ("Years", "Months", "Weeks", "Days")
_OF_TIMES = ("Hours", "Minutes", "Seconds")


def _moves(receiver: str, prefix: str, kind: Kind, units: tuple[str, ...], sign: int = 1) -> list[Function]:
    """Return, for each unit, the function that shifts a moment: `LocalDate.addDays`, or `plusDays` of one."""
    parameters = (WHOLE,) if receiver in VALUES else (kind, WHOLE)

    def mover(unit: Duration) -> Callable[[date, int], date]:
        return lambda moment, count: (unit * (sign * count)).after(moment)

    return [Function(receiver, f"{prefix}{name}", parameters, kind, mover(_UNITS[name])) for name in units]


def _lengths(receiver: str, kind: Kind, *units: str) -> Iterator[Function]:
    """Yield, for each unit, the function that makes a duration, such as `Duration.ofDays`."""
    for name in units:
        yield Function(receiver, f"of{name}", (WHOLE,), kind, kind.convert(_UNITS[name]).__mul__)


def _parsers(receiver: str, kind: Kind) -> list[Function]:
    return [Function(receiver, name, (kind,), kind, _same) for name in ("parse", "valueOf")]


def _get_variable(context: EvaluationContext, name: str, default: object = "") -> object:
    found = context.environ.get(name)
    if found and is_secret_name(name):
        context.secrets.add(found)
    if found is None:
        context.defaults.add(render_value(default))
        return default
    return found


def _get_property(context: EvaluationContext, name: str, default: object = "") -> object:
    variables = {"user.home": "HOME", "user.name": "USER"}
    return context.environ.get(variables.get(name, ""), default)


def _read_file(context: EvaluationContext, path: str) -> str:
    if context.read_file is None:
        raise SpecError.of("an expression reads a file, which is not possible here")
    text = context.read_file(path)
    if text.strip():
        context.secrets.update((text, text.strip()))
    return text


def _url_encode(text: str) -> str:
    def encoded(found: re.Match[bytes]) -> bytes:
        return b"+" if found[0] == b" " else b"%%%02X" % ord(found[0])

    return re.sub(rb"[^A-Za-z0-9.*_-]", encoded, text.encode()).decode()


def _url_decode(text: str) -> str:
    def decoded(found: re.Match[str]) -> str:
        return bytes.fromhex(found[0].replace("%", "")).decode(errors="replace")

    return re.sub(r"(?:%[0-9A-Fa-f]{2})+", decoded, text.replace("+", " "))


_PATH_UNSAFE = frozenset("\"#%'*/:=?\\\x7f{[]^") | frozenset(chr(code) for code in range(1, 32))


def _escape_path(text: str) -> str:
    return "".join(f"%{ord(sign):02X}" if sign in _PATH_UNSAFE else sign for sign in text)


def _encode_partition(value: object) -> str:
    """Return a value as the name of a partition's folder. `*` is kept, for patterns."""
    if value == "*":
        return "*"
    if isinstance(value, datetime):
        return _escape_path(format_moment(value, "yyyy-MM-dd HH:mm:ss"))
    return _escape_path(render_value(value))


def _substring(text: str, start: int, end: int | None = None) -> str:
    for index in (start, start if end is None else end):
        if not 0 <= index <= len(text):
            raise ValueError(f"position {index} is outside the text of {len(text)} characters")
    return text[start:end]


def _of_epoch(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _seconds(duration: Duration) -> int:
    return _as_exact(duration).microseconds // 1_000_000


def _between(start: datetime, end: datetime) -> Duration:
    return Duration(microseconds=(end - start) // timedelta(microseconds=1))


def _sum(one: Duration, other: Duration) -> Duration:
    return Duration(one.months + other.months, one.days + other.days, one.microseconds + other.microseconds)


_STEP = re.compile(
    r"\.(?P<name>[\w-]+)|\[(?P<index>\d{1,6})\]|\[(?P<quote>['\"])(?P<key>[^'\"]*)(?P=quote)\]"
    r"|\[\?\(\s*@\.(?P<field>[\w-]+)\s*==\s*(?P<mark>['\"])(?P<wanted>[^'\"]*)(?P=mark)\s*\)\]"
)


def _json_path(text: str, path: str) -> Any:
    """Return the first value at a path such as `$.a[0]` or `$.list[?(@.key=="user")].value`.

    Raises:
        ValueError: The text is not JSON, the path is not supported, or it does not lead to a single value.

    Example:
        >>> _json_path('{"a": [{"k": "x", "v": 1}]}', '$.a[?(@.k=="x")].v')
        1
    """
    try:
        found = [json.loads(text)]
    except RecursionError:
        raise ValueError("the JSON is nested too deep") from None
    position = 1
    if not path.startswith("$"):
        raise ValueError(f"{path!r} does not start with $")
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise ValueError(f"{path!r} is not supported, from {path[position : position + 20]!r} on")
        found = [inner for value in found for inner in _follow(value, step)]
        position = step.end()
    if not found or isinstance(found[0], (dict, list)):
        raise ValueError(f"{path!r} does not lead to a single value")
    return found[0]


def _follow(value: Any, step: re.Match[str]) -> list[Any]:
    if step["index"] is not None:
        return value[int(step["index"]) :][:1] if isinstance(value, list) else []
    if step["field"] is not None:
        items = value if isinstance(value, list) else []
        return [
            item for item in items if isinstance(item, dict) and item.get(step["field"]) == step["wanted"]
        ]
    name = step["name"] if step["name"] is not None else step["key"]
    return [value[name]] if isinstance(value, dict) and name in value else []


ALONE = ""
"""The receiver of functions that belong to no helper."""

FUNCTIONS: tuple[Function, ...] = (
    Function(ALONE, "sql", (VALUE,), TEXT, values.quote_value),
    *_parsers("LocalDate", DATE),
    Function("LocalDate", "today", (), DATE, lambda context: context.local_now().date(), uses_context=True),
    Function("LocalDate", "now", (), DATE, lambda context: context.local_now().date(), uses_context=True),
    Function("LocalDate", "format", (DATE, TEXT), TEXT, format_moment),
    *_moves("LocalDate", "add", DATE, _OF_DATES),
    *_parsers("LocalDateTime", LOCAL),
    Function("LocalDateTime", "now", (), LOCAL, EvaluationContext.local_now, uses_context=True),
    Function("LocalDateTime", "ofEpochSeconds", (WHOLE,), LOCAL, lambda at: _as_local(_of_epoch(at))),
    Function("LocalDateTime", "format", (LOCAL, TEXT), TEXT, format_moment),
    Function("LocalDateTime", "add", (LOCAL, EXACT), LOCAL, lambda moment, length: length.after(moment)),
    Function(
        "LocalDateTime", "subtract", (LOCAL, EXACT), LOCAL, lambda moment, length: (-length).after(moment)
    ),
    *_moves("LocalDateTime", "add", LOCAL, (*_OF_DATES, *_OF_TIMES)),
    *_parsers("Timestamp", TIMESTAMP),
    Function("Timestamp", "now", (), TIMESTAMP, EvaluationContext.now, uses_context=True),
    Function("Timestamp", "ofEpochSeconds", (WHOLE,), TIMESTAMP, _of_epoch),
    Function("Timestamp", "toEpochSeconds", (TIMESTAMP,), WHOLE, lambda moment: int(moment.timestamp())),
    Function("Timestamp", "format", (TIMESTAMP, TEXT), TEXT, format_moment),
    Function("Timestamp", "add", (TIMESTAMP, DURATION), TIMESTAMP, lambda at, length: length.after(at)),
    Function("Timestamp", "subtract", (TIMESTAMP, DURATION), TIMESTAMP, lambda at, by: (-by).after(at)),
    *_parsers("Duration", EXACT),
    Function("Duration", "between", (TIMESTAMP, TIMESTAMP), EXACT, _between),
    *_lengths("Duration", EXACT, "Days", *_OF_TIMES, "Millis"),
    *_parsers("Period", PERIOD),
    *_lengths("Period", PERIOD, *_OF_DATES),
    *_parsers("Integer", WHOLE),
    *_parsers("Float", FLOAT),
    *_parsers("Boolean", BOOLEAN),
    Function("String", "concat", (TEXT,) * 5, TEXT, lambda *parts: "".join(parts), optional=3),
    Function("String", "urlEncode", (TEXT,), TEXT, _url_encode),
    Function("String", "escapePathName", (TEXT,), TEXT, _escape_path),
    Function("String", "partitionEncode", (ANY,), TEXT, _encode_partition),
    Function("URL", "encode", (TEXT,), TEXT, _url_encode),
    Function("URL", "decode", (TEXT,), TEXT, _url_decode),
    Function("JSON", "path", (TEXT, TEXT), ANY, _json_path),
    Function("File", "read", (TEXT,), TEXT, _read_file, uses_context=True),
    Function("System", "getenv", (TEXT, ANY), TEXT, _get_variable, optional=1, uses_context=True),
    Function("System", "getProperty", (TEXT, ANY), TEXT, _get_property, optional=1, uses_context=True),
    *_moves("date", "plus", DATE, _OF_DATES),
    *_moves("date", "minus", DATE, _OF_DATES, -1),
    Function("date", "plus", (DURATION,), DATE, lambda day, length: length.after(day)),
    Function("date", "minus", (DURATION,), DATE, lambda day, length: (-length).after(day)),
    Function("date", "getYear", (), WHOLE, lambda day: day.year),
    Function("date", "getMonthValue", (), WHOLE, lambda day: day.month),
    Function("date", "getMonth", (), TEXT, lambda day: MONTHS[day.month - 1].upper()),
    Function("date", "getDayOfMonth", (), WHOLE, lambda day: day.day),
    Function("date", "getDayOfYear", (), WHOLE, lambda day: day.timetuple().tm_yday),
    Function("date", "getDayOfWeek", (), TEXT, lambda day: DAYS[day.weekday()].upper()),
    Function("date", "withYear", (WHOLE,), DATE, lambda day, year: day.replace(year=year)),
    Function("date", "withMonth", (WHOLE,), DATE, lambda day, month: day.replace(month=month)),
    Function("date", "withDayOfMonth", (WHOLE,), DATE, lambda day, number: day.replace(day=number)),
    Function("date", "isBefore", (TIMESTAMP,), BOOLEAN, lambda day, other: _as_timestamp(day) < other),
    Function("date", "isAfter", (TIMESTAMP,), BOOLEAN, lambda day, other: _as_timestamp(day) > other),
    Function("date", "isEqual", (TIMESTAMP,), BOOLEAN, lambda day, other: _as_timestamp(day) == other),
    Function("date", "toLocalDate", (), DATE, _as_date),
    Function("date", "toEpochDay", (), WHOLE, lambda day: (_as_date(day) - date(1970, 1, 1)).days),
    Function("date", "atStartOfDay", (), LOCAL, lambda day: datetime.combine(_as_date(day), time.min)),
    Function("date", "format", (TEXT,), TEXT, format_moment),
    *_moves("date and time", "plus", LOCAL, _OF_TIMES),
    *_moves("date and time", "minus", LOCAL, _OF_TIMES, -1),
    Function("date and time", "getHour", (), WHOLE, lambda moment: moment.hour),
    Function("date and time", "getMinute", (), WHOLE, lambda moment: moment.minute),
    Function("date and time", "getSecond", (), WHOLE, lambda moment: moment.second),
    Function("date and time", "toLocalDateTime", (), LOCAL, _as_local),
    Function("date and time", "toTimestamp", (), TIMESTAMP, _as_timestamp),
    Function("date and time", "toEpochSeconds", (), WHOLE, lambda at: int(_as_timestamp(at).timestamp())),
    Function("text", "toUpperCase", (), TEXT, str.upper),
    Function("text", "toLowerCase", (), TEXT, str.lower),
    Function("text", "trim", (), TEXT, str.strip),
    Function("text", "length", (), WHOLE, len),
    Function("text", "isEmpty", (), BOOLEAN, lambda text: not text),
    Function("text", "concat", (TEXT,), TEXT, lambda text, other: text + other),
    Function("text", "contains", (TEXT,), BOOLEAN, lambda text, other: other in text),
    Function("text", "startsWith", (TEXT,), BOOLEAN, str.startswith),
    Function("text", "endsWith", (TEXT,), BOOLEAN, str.endswith),
    Function("text", "equals", (ANY,), BOOLEAN, lambda text, other: text == other),
    Function("text", "indexOf", (TEXT,), WHOLE, str.find),
    Function(
        "text", "replace", (TEXT, TEXT), TEXT, lambda text, old, new: text.replace(old, new) if old else text
    ),
    Function("text", "substring", (WHOLE, WHOLE), TEXT, _substring, optional=1),
    Function("duration", "plus", (DURATION,), DURATION, _sum),
    Function("duration", "minus", (DURATION,), DURATION, lambda one, other: _sum(one, -other)),
    Function("duration", "multipliedBy", (WHOLE,), DURATION, Duration.__mul__),
    Function("duration", "negated", (), DURATION, Duration.__neg__),
    Function("duration", "getSeconds", (), WHOLE, _seconds),
    Function("duration", "toSeconds", (), WHOLE, _seconds),
    Function("duration", "toMinutes", (), WHOLE, lambda length: _seconds(length) // 60),
    Function("duration", "toHours", (), WHOLE, lambda length: _seconds(length) // 3600),
    Function("duration", "toDays", (), WHOLE, lambda length: _seconds(length) // values.SECONDS_A_DAY),
    Function("duration", "toMillis", (), WHOLE, lambda length: _as_exact(length).microseconds // 1000),
    Function("duration", "getDays", (), WHOLE, lambda length: length.days),
    Function("duration", "getMonths", (), WHOLE, lambda length: length.months % 12),
    Function("duration", "getYears", (), WHOLE, lambda length: length.months // 12),
    Function("duration", "toTotalMonths", (), WHOLE, lambda length: length.months),
    Function("path", "getParent", (), PATH, lambda path: path.parent),
    Function("path", "getAbsPath", (), PATH, _same),
    Function("path", "getPath", (), TEXT, render_value),
    Function("path", "getFilename", (), TEXT, lambda path: path.name),
    Function("path", "withName", (TEXT,), PATH, PurePath.with_name),
    Function("path", "withSuffix", (TEXT,), PATH, lambda path, suffix: path.with_name(path.name + suffix)),
    *(Function(word, "toString", (), TEXT, render_value) for word in VALUES),
)
"""All functions. A date and time has the methods of a date, too."""


def functions_of(receiver: str) -> dict[str, Function]:
    """Return the functions of a helper, or the methods of a type of values, by name."""
    inherited = functions_of("date") if receiver == "date and time" else {}
    return inherited | {each.name: each for each in FUNCTIONS if each.receiver == receiver}


FREE_FUNCTIONS = Namespace(ALONE, functions_of(ALONE))
"""The functions that belong to no helper."""

NAMESPACES: Mapping[str, Namespace] = {
    name: Namespace(name, functions_of(name))
    for name in dict.fromkeys(each.receiver for each in FUNCTIONS)
    if name not in (ALONE, *VALUES)
}
"""The helpers, by name."""
