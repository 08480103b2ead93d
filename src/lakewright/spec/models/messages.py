"""The words of errors about values: pydantic's own are for programmers, not for authors of projects.

Values are shown only where they choose one of a few words or are a number: others may be secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from lakewright.spec.suggestions import meant
from lakewright.spec.words import counted

_LONGEST_SHOWN = 60


def message_of(kind: str, message: str, context: Mapping[str, Any], value: Any) -> tuple[str, str | None]:
    """Return the message and the remedy of an error of pydantic's.

    Args:
        kind: The type of the error, such as `literal_error`.
        message: Pydantic's message, for errors that validators raised.
        context: What pydantic reports about the error.
        value: The value that was given.

    Example:
        >>> message_of("int_parsing", "", {}, "many")
        ("must be a whole number, not 'many'", None)
    """
    if kind in ("literal_error", "enum"):
        return _not_one_of(_quoted(str(context.get("expected", ""))), value)
    for pattern, write in _WRITTEN:
        if re.fullmatch(pattern, kind):
            return write(message, context, value), None
    return re.sub(r"^Input should be", "must be", message), None


def _quoted(expected: str) -> list[str]:
    return re.findall(r"'([^']*)'", expected)


def _not_one_of(known: list[str], value: Any) -> tuple[str, str | None]:
    *others, last = [repr(word) for word in known] or ["a known word"]
    listed = f"{', '.join(others)} or {last}" if others else last
    return f"must be {listed}, not {_given(value)}", meant(value, known) if isinstance(value, str) else None


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def _given(value: Any) -> str:
    return _shown(value) if isinstance(value, str | int | float) else _kind(value)


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a map"
    if isinstance(value, list | tuple):
        return "a list"
    return "a single value"


Written = Callable[[str, Mapping[str, Any], Any], str]


def _raised(message: str, context: Mapping[str, Any], value: Any) -> str:
    del context, value
    return message.removeprefix("Value error, ").removeprefix("Assertion failed, ")


def _too_short(message: str, context: Mapping[str, Any], value: Any) -> str:
    del message, value
    least = context.get("min_length", 1)
    return "must not be empty" if least == 1 else f"needs at least {counted(least, 'entry')}"


def _limit(words: str) -> Written:
    return lambda _, context, value: (
        f"must be {words} {next(iter(context.values()), '')}, not {_given(value)}"
    )


def _wanted(words: str, shows: Callable[[Any], str]) -> Written:
    return lambda _, __, value: f"must be {words}, not {shows(value)}"


_WRITTEN: tuple[tuple[str, Written], ...] = (
    (r"(value|assertion)_error", _raised),
    (
        r"string_pattern_mismatch",
        lambda _, context, value: f"{_given(value)} does not match {context['pattern']}",
    ),
    (r"(string_)?too_short", _too_short),
    (r"greater_than", _limit("greater than")),
    (r"greater_than_equal", _limit("at least")),
    (r"less_than", _limit("less than")),
    (r"less_than_equal", _limit("at most")),
    (r"string_(type|sub_type|unicode)", _wanted("a text", _kind)),
    (r"int_(type|parsing|parsing_size|from_float)", _wanted("a whole number", _given)),
    (r"(float|decimal)_(type|parsing)|finite_number", _wanted("a number", _given)),
    (r"bool_(type|parsing)", _wanted("true or false", _given)),
    (r"(list|tuple|set|frozen_set|iterable)_type", _wanted("a list", _kind)),
    (r"(dict|mapping|model|model_attributes)_type", _wanted("a map", _kind)),
    (r"date_.*", _wanted("a date such as 2022-11-01", _given)),
    (r"datetime_.*", _wanted("a date and time such as 2022-11-01T06:00:00", _given)),
    (r"time_delta_(type|parsing)", _wanted("a duration such as PT15M", _given)),
)
"""Patterns of types of errors, with what writes their message."""
