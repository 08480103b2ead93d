"""A file of the project as plain values, with the line of each value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from lakewright.errors import Location

ValuePath = tuple[str | int, ...]
"""Keys and list positions that lead from the top of a document to a value."""

DOUBLED = "doubled"
"""Detail of the fault of a key that occurs twice: its path."""

_NOTHING: Mapping[str | int, Any] = MappingProxyType({})


class Lines(NamedTuple):
    """The line of a value, and those of the values inside it.

    Attributes:
        line: Starts at 1. For an entry of a map it is the line of the key.
        inner: The `Lines` of a map's entries or a list's items.
    """

    line: int
    inner: Mapping[str | int, Any] = _NOTHING


@dataclass(frozen=True)
class ParsedFile:
    """One file as maps, lists, texts and None. Every scalar is the text that the user wrote.

    Attributes:
        file: The name of the file in errors.
        value: The content of the file, or None if it is empty.
        find_lines: Finds the lines. Called at the first use of `lines`.
    """

    file: str
    value: Any
    find_lines: Callable[[], Lines]

    @classmethod
    def empty(cls, file: str) -> ParsedFile:
        """Return a document without a value, for a file that cannot be read."""
        return cls(file, None, lambda: Lines(1))

    @cached_property
    def lines(self) -> Lines:
        """The lines of all values of the document."""
        return self.find_lines()

    def has(self, path: Sequence[str | int]) -> bool:
        """Return whether there is a value at `path`."""
        lines: Lines | None = self.lines
        for step in path:
            lines = None if lines is None else lines.inner.get(step)
        return lines is not None

    def at(self, path: Sequence[str | int] = ()) -> Location:
        """Return the location of the value at `path`, or of the enclosing value if there is none."""
        lines = self.lines
        for step in path:
            inner: Lines | None = lines.inner.get(step)
            if inner is not None:
                lines = inner
        return Location(self.file, lines.line)


def nodes_in(value: Any, path: ValuePath = ()) -> Iterator[tuple[ValuePath, Any]]:
    """Yield a value of maps and lists, and each value inside it, with their paths."""
    yield path, value
    inside: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, Mapping):
        inside = value.items()
    elif isinstance(value, (list, tuple)):
        inside = enumerate(value)
    for step, inner in inside:
        yield from nodes_in(inner, (*path, step))


def value_at(value: Any, path: Iterable[str | int]) -> Any:
    """Return what is at a path in a value of maps, or the innermost value around it."""
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            break
        value = value[key]
    return value


def texts_in(value: Any, *without: str) -> Iterator[str]:
    """Yield every text in a value of maps and lists, except those below the keys `without`."""
    for path, each in nodes_in(value):
        if isinstance(each, str) and not any(key in path for key in without):
            yield each


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a file with its place, whose line is looked up only when it is needed."""

    document: ParsedFile
    path: ValuePath
    value: Any

    @property
    def location(self) -> Location:
        """The location in the file."""
        return self.document.at(self.path)

    @property
    def key(self) -> str:
        """The key at which it stands in its map; of a whole file, the file."""
        return str(self.path[-1]) if self.path else self.document.file

    def inner(self, step: str | int, value: Any) -> Node:
        """Return a value inside it."""
        return Node(self.document, (*self.path, step), value)
