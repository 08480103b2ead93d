"""Reader of JSON files, which keeps every scalar as the text that the user wrote.

Python's parser provides the values. The lines come from a second pass, which runs only if a fault needs them.
"""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from lakewright.errors import Fault, Location
from lakewright.spec.reading.parsed_file import DOUBLED, Lines, ParsedFile, nodes_in

# Limits of size and depth, so that a hostile file ends in a fault within seconds.
LONGEST = 16_000_000
DEEPEST = 50
MOST_NODES = 300_000
MOST_FAULTS = 20

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)


class _Map(dict[str, Any]):
    """A map that remembers its duplicate keys."""

    duplicates: tuple[str, ...] = ()


class _NotANumber(ValueError):
    """NaN or Infinity, which are not JSON."""


def read_json(text: str, file: str) -> tuple[ParsedFile, tuple[Fault, ...]]:
    """Return the document of a text, and its faults.

    Numbers and booleans stay text (`1.50`, `true`); null becomes None. A duplicate key keeps its first value
    and is a fault. A text that is not JSON gives an empty document and a fault.
    """
    value, fault = _parse(text, file)
    if fault is not None:
        return ParsedFile.empty(file), (fault,)
    document = ParsedFile(file, value, lambda: _find_lines(text))
    return document, tuple(islice(_doubled_keys(document), MOST_FAULTS))


def _parse(text: str, file: str) -> tuple[Any, Fault | None]:
    too_large = f"the file has more than {LONGEST} characters or {MOST_NODES} values"
    if len(text) > LONGEST or text.count(",") + text.count("[") + text.count("{") > MOST_NODES:
        return None, Fault(too_large, location=Location(file), remedy="Split it.")
    try:
        found = json.loads(
            text, object_pairs_hook=_map, parse_int=str, parse_float=str, parse_constant=_refuse_constant
        )
        return _as_text(found, 0), None
    except json.JSONDecodeError as error:
        where, remedy = Location(file, error.lineno, error.colno), "Check quotes, commas and brackets."
        return None, Fault(f"not JSON: {error.msg}", where, remedy)
    except _NotANumber as error:
        found_at = re.search(r"-?(?:NaN|Infinity)", text)
        line = text.count("\n", 0, found_at.start()) + 1 if found_at else None
        why, remedy = f"not JSON: {error} is not a number", "Write a number or null."
        return None, Fault(why, Location(file, line), remedy)
    except RecursionError:
        return None, Fault(f"values are nested more than {DEEPEST} deep", location=Location(file))


def _map(pairs: Sequence[tuple[str, Any]]) -> _Map:
    found = _Map(pairs)
    if len(found) < len(pairs):
        found.duplicates = tuple(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        for key, value in reversed(pairs):
            found[key] = value
    return found


def _refuse_constant(name: str) -> Any:
    raise _NotANumber(name)


def _as_text(value: Any, depth: int) -> Any:
    """Return a value with booleans as texts.

    Raises:
        RecursionError: The value is nested too deep.
    """
    if depth > DEEPEST:
        raise RecursionError
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        for key, inner in value.items():
            value[key] = _as_text(inner, depth + 1)
    elif isinstance(value, list):
        value[:] = [_as_text(inner, depth + 1) for inner in value]
    return value


def _doubled_keys(document: ParsedFile) -> Iterator[Fault]:
    for path, value in nodes_in(document.value):
        for key in value.duplicates if isinstance(value, _Map) else ():
            where = document.at((*path, key))
            remedy = "Remove or rename one of them."
            yield Fault(f"the key {key!r} occurs twice", where, remedy, details={DOUBLED: (*path, key)})


def _find_lines(text: str) -> Lines:
    """Return the lines of a text that is valid JSON."""
    top: dict[str | int, Lines] = {}
    stack = [(top, False)]
    breaks = [found.start() for found in re.finditer("\n", text)]
    key, is_key_next = "", False
    for token in _TOKEN.finditer(text):
        sign = token[0]
        inner, is_map = stack[-1]
        if sign in "]}":
            stack.pop()
            is_key_next = False
        elif sign in ",:":
            is_key_next = is_map and sign == ","
        elif is_key_next:
            key = json.loads(sign) if "\\" in sign else sign[1:-1]
            inner.setdefault(key, Lines(bisect(breaks, token.start()) + 1))
        else:
            step: str | int = key if is_map else len(inner)
            within: dict[str | int, Lines] = {}
            line = inner[step].line if step in inner else bisect(breaks, token.start()) + 1
            inner[step] = Lines(line, within)
            if sign in "[{":
                stack.append((within, sign == "{"))
                is_key_next = sign == "{"
    return top.get(0, Lines(1))
