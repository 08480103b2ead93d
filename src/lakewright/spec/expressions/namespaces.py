"""The helpers of expressions, with Flowman's names: `LocalDate`, `System` and so on.

A value is read from a secrets file with a subset of JSONPath.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from lakewright.errors import SpecError
from lakewright.spec.expressions import values
from lakewright.spec.expressions.conversions import (
    DATE_UNITS,
    TIME_UNITS,
    as_calendar,
    as_date,
    as_duration,
    as_exact,
    as_local,
    as_text,
    as_timestamp,
    as_whole,
    between,
    lengths,
    moving,
)
from lakewright.spec.expressions.date_patterns import format_moment
from lakewright.spec.expressions.function import EvaluationContext, Namespace, functions
from lakewright.spec.expressions.secrets import is_secret_name

__all__ = ["NAMESPACES", "json_path"]


def _getenv(context: EvaluationContext, name: object, default: object = "") -> object:
    key = as_text(name)
    found = context.environ.get(key)
    if found and is_secret_name(key):
        context.secrets.add(found)
    if found is None:
        context.defaults.add(as_text(default))
        return default
    return found


def _get_property(context: EvaluationContext, name: object, default: object = "") -> object:
    variables = {"user.home": "HOME", "user.name": "USER"}
    return context.environ.get(variables.get(as_text(name), ""), default)


def _read_file(context: EvaluationContext, path: object) -> str:
    if context.read_file is None:
        raise SpecError.of("an expression reads a file, which is not possible here")
    text = context.read_file(as_text(path))
    if text.strip():
        context.secrets.update((text, text.strip()))
    return text


_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-*_")
_PATH_UNSAFE = frozenset("\"#%'*/:=?\\\x7f{[]^") | frozenset(chr(code) for code in range(1, 32))


def _url_encode(value: object) -> str:
    return "".join(
        chr(byte) if byte in _UNRESERVED else "+" if byte == 32 else f"%{byte:02X}"
        for byte in as_text(value).encode()
    )


def _url_decode(value: object) -> str:
    def decoded(found: re.Match[str]) -> str:
        return bytes.fromhex(found.group().replace("%", "")).decode(errors="replace")

    return re.sub(r"(?:%[0-9A-Fa-f]{2})+", decoded, as_text(value).replace("+", " "))


def _escape_path(value: object) -> str:
    return "".join(f"%{ord(sign):02X}" if sign in _PATH_UNSAFE else sign for sign in as_text(value))


def _encode_partition(value: object) -> str:
    """Return a value as the name of a partition's folder. `*` is kept, for patterns."""
    if value == "*":
        return "*"
    if isinstance(value, datetime):
        return _escape_path(format_moment(value, "yyyy-MM-dd HH:mm:ss"))
    return _escape_path(value)


def _concat(
    first: object, second: object, third: object = "", fourth: object = "", fifth: object = ""
) -> str:
    return "".join(as_text(part) for part in (first, second, third, fourth, fifth))


NAMESPACES: Mapping[str, Namespace] = {
    name: Namespace(name, functions)
    for name, functions in {
        "LocalDate": functions(
            {
                "parse": as_date,
                "valueOf": as_date,
                "format": lambda value, pattern: format_moment(as_date(value), as_text(pattern)),
            },
            moving("add", DATE_UNITS, as_date),
            with_context={
                "now": lambda context: context.local_now().date(),
                "today": lambda context: context.local_now().date(),
            },
        ),
        "LocalDateTime": functions(
            {
                "parse": as_local,
                "valueOf": as_local,
                "ofEpochSeconds": lambda epoch: datetime.fromtimestamp(as_whole(epoch), UTC).replace(
                    tzinfo=None
                ),
                "format": lambda value, pattern: format_moment(as_local(value), as_text(pattern)),
                "add": lambda value, duration: as_exact(duration).after(as_local(value)),
                "subtract": lambda value, duration: (-as_exact(duration)).after(as_local(value)),
            },
            moving("add", (*DATE_UNITS, *TIME_UNITS), as_local),
            with_context={"now": lambda context: context.local_now()},
        ),
        "Timestamp": functions(
            {
                "parse": as_timestamp,
                "valueOf": as_timestamp,
                "ofEpochSeconds": lambda epoch: datetime.fromtimestamp(as_whole(epoch), UTC),
                "toEpochSeconds": lambda value: int(as_timestamp(value).timestamp()),
                "format": lambda value, pattern: format_moment(as_timestamp(value), as_text(pattern)),
                "add": lambda value, duration: as_duration(duration).after(as_timestamp(value)),
                "subtract": lambda value, duration: (-as_duration(duration)).after(as_timestamp(value)),
            },
            with_context={"now": lambda context: context.now()},
        ),
        "Duration": functions(
            {"parse": as_exact, "valueOf": as_exact, "between": between},
            lengths(("Days", "Hours", "Minutes", "Seconds", "Millis"), is_exact=True),
        ),
        "Period": functions(
            {"parse": as_calendar, "valueOf": as_calendar}, lengths(DATE_UNITS, is_exact=False)
        ),
        "Integer": functions(dict.fromkeys(("parse", "valueOf"), as_whole)),
        "Float": functions(
            dict.fromkeys(("parse", "valueOf"), lambda value: values.parse_float(as_text(value)))
        ),
        "Boolean": functions(
            dict.fromkeys(("parse", "valueOf"), lambda value: as_text(value).strip().lower() == "true")
        ),
        "String": functions(
            {
                "concat": _concat,
                "urlEncode": _url_encode,
                "escapePathName": _escape_path,
                "partitionEncode": _encode_partition,
            }
        ),
        "URL": functions({"encode": _url_encode, "decode": _url_decode}),
        "JSON": functions({"path": lambda text, path: json_path(as_text(text), as_text(path))}),
        "File": functions(with_context={"read": _read_file}),
        "System": functions(with_context={"getenv": _getenv, "getProperty": _get_property}),
    }.items()
}
"""The helpers, by name."""


_STEP = re.compile(
    r"\.(?P<name>[\w-]+)|\[(?P<index>\d{1,6})\]|\[(?P<quote>['\"])(?P<key>[^'\"]*)(?P=quote)\]"
    r"|\[\?\(\s*@\.(?P<field>[\w-]+)\s*==\s*(?P<mark>['\"])(?P<wanted>[^'\"]*)(?P=mark)\s*\)\]"
)


def json_path(text: str, path: str) -> Any:
    """Return the first value at a path such as `$.a[0]` or `$.list[?(@.key=="user")].value`.

    Raises:
        ValueError: The text is not JSON, the path is not supported, or it does not lead to a single value.

    Example:
        >>> json_path('{"a": [{"k": "x", "v": 1}]}', '$.a[?(@.k=="x")].v')
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
