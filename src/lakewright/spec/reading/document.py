"""A file of the project as plain values, and the line where each of them stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from lakewright.errors import Location

__all__ = ["Document", "LazyLocation", "Lines", "ValuePath"]

ValuePath = tuple[str | int, ...]
"""Keys and positions that lead from the top of a document to a value in it."""


_NOTHING: Mapping[str | int, Any] = MappingProxyType({})


class Lines(NamedTuple):
    """The line of a value, and of what is inside it.

    Attributes:
        line: Counts from 1; for an entry of a map it is the key's line.
        inner: `Lines` of the entries of a map, or of the items of a list.
    """

    line: int
    inner: Mapping[str | int, Any] = _NOTHING


@dataclass(frozen=True)
class Document:
    """One file: maps, lists, texts and None, where every scalar is the text that was written.

    Attributes:
        file: As it shall be named in errors.
        value: The top of the file; None for an empty one.
        find_lines: Finds the lines, when they are first asked for.
    """

    file: str
    value: Any
    find_lines: Callable[[], Lines]

    @classmethod
    def empty(cls, file: str) -> Document:
        """Return a document without a value, for a file that can't be read."""
        return cls(file, None, lambda: Lines(1))

    @cached_property
    def lines(self) -> Lines:
        """Lines of every value of the document."""
        return self.find_lines()

    def at(self, path: Sequence[str | int] = ()) -> Location:
        """Return where the value at `path` stands; where it doesn't exist, what encloses it."""
        lines = self.lines
        for step in path:
            inner: Lines | None = lines.inner.get(step)
            if inner is not None:
                lines = inner
        return Location(self.file, lines.line)


@dataclass(frozen=True, slots=True)
class LazyLocation:
    """Where a value stands; its line is looked up only when it is asked for."""

    document: Document
    path: ValuePath

    @property
    def location(self) -> Location:
        """The place in its file."""
        return self.document.at(self.path)
