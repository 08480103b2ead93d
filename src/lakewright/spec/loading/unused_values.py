"""Values of `-D` that nothing in the project's files names, which are probably slips."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from lakewright.errors import Fault
from lakewright.spec.reading.parsed_file import ParsedFile
from lakewright.spec.suggestions import meant

__all__ = ["unused_values"]

_NAMED = re.compile(r"^\s*(\w+)\s*=")
_EXPRESSION = re.compile(r"\$(?:\{[^}]*\}?|\w+)")
_WORD = re.compile(r"\w+")


def unused_values(
    given: Iterable[str], declared: Iterable[str], documents: Iterable[ParsedFile]
) -> Iterator[Fault]:
    """Yield a warning for each name that no environment, parameter or expression has.

    Args:
        given: The names of `-D`.
        declared: The names of the environment, of which the most similar one is suggested.
        documents: The project's files; texts of files that they refer to, such as SQL, are not looked at.
    """
    missing = set(given)
    for document in documents if missing else ():
        missing -= set(_names(document.value))
    known = list(declared)
    for name in sorted(missing):
        yield Fault(
            f"-D {name}=…: no environment, parameter or expression in the project's files has this name",
            remedy=meant(name, known) or "Declare it in an environment if only a file of SQL uses it.",
        )


def _names(value: Any) -> Iterator[str]:
    """Yield what may be the name of a value: keys, texts of `name:`, `name=…`, and words of expressions."""
    if isinstance(value, dict):
        yield from value
        if isinstance(value.get("name"), str):
            yield value["name"]
        for each in value.values():
            yield from _names(each)
    elif isinstance(value, list):
        for each in value:
            yield from _names(each)
    elif isinstance(value, str):
        yield from _NAMED.findall(value)
        for expression in _EXPRESSION.findall(value):
            yield from _WORD.findall(expression)
