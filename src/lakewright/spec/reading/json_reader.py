"""Reader of JSON files, which keeps every scalar as the text that the user wrote.

Python's parser provides the values. The lines come from the reader of YAML, of which JSON is nearly a part;
it runs only if a fault needs them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from lakewright.errors import Fault, Location
from lakewright.spec.reading.parsed_file import ParsedFile
from lakewright.spec.reading.yaml_reader import read_yaml

# Limits of size and depth, so that a hostile file ends in a fault within seconds.
LONGEST = 16_000_000
DEEPEST = 50
MOST_NODES = 300_000
MOST_FAULTS = 20

_SPACES = str.maketrans(dict.fromkeys("\t\x85\u2028\u2029", " "))
"""Tabs, which do not separate values in YAML, and characters that end a line there, but not in JSON."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""Half of a character of a pair of escapes, which YAML does not have."""


class _NotANumber(ValueError):
    """NaN or Infinity, which are not JSON."""


def read_json(text: str, file: str) -> tuple[ParsedFile, tuple[Fault, ...]]:
    """Return the document of a text, and its faults.

    Numbers and booleans stay text (`1.50`, `true`); null becomes None. A duplicate key keeps its first value
    and is a fault. A text that is not JSON gives an empty document and a fault.
    """
    has_doubled_keys = False

    def as_map(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_doubled_keys
        found = dict(pairs)
        has_doubled_keys = has_doubled_keys or len(found) < len(pairs)
        return found

    try:
        if len(text) > LONGEST or text.count(",") + text.count("[") + text.count("{") > MOST_NODES:
            why = f"the file has more than {LONGEST} characters or {MOST_NODES} values"
            return _refused(why, Location(file), "Split it.")
        value = _as_text(
            json.loads(
                text,
                object_pairs_hook=as_map,
                parse_int=str,
                parse_float=str,
                parse_constant=_refuse_constant,
            ),
            0,
        )
    except json.JSONDecodeError as error:
        where = Location(file, error.lineno, error.colno)
        return _refused(f"not JSON: {error.msg}", where, "Check quotes, commas and brackets.")
    except _NotANumber as error:
        found_at = re.search(r"-?(?:NaN|Infinity)", text)
        line = text.count("\n", 0, found_at.start()) + 1 if found_at else None
        return _refused(f"not JSON: {error} is not a number", Location(file, line), "Write a number or null.")
    except RecursionError:
        return _refused(f"values are nested more than {DEEPEST} deep", Location(file))
    if has_doubled_keys:
        document, faults = _read_as_yaml(text, file)
        return document, faults[:MOST_FAULTS]
    return ParsedFile(file, value, lambda: _read_as_yaml(text, file)[0].lines), ()


def _refused(why: str, location: Location, remedy: str | None = None) -> tuple[ParsedFile, tuple[Fault, ...]]:
    return ParsedFile.empty(location.file), (Fault(why, location, remedy),)


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


def _read_as_yaml(text: str, file: str) -> tuple[ParsedFile, tuple[Fault, ...]]:
    """Return the document of a text that is valid JSON, with its lines, and a fault for each doubled key."""
    written = _SURROGATE.sub(r"\\0", text.translate(_SPACES))
    return read_yaml(written, file, longest=LONGEST, most_nodes=2 * MOST_NODES)
