"""Text for people, independent of where it is printed: styled lines, trees and tables.

A page knows no terminal. `Output` prints it plainly, or with colours and guides on a terminal.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lakewright.errors.phrase import Phrase
from lakewright.errors.surfaces import on_terminal
from lakewright.spec.words import duration

INDENT = "  "
GAP = "  "


SHORT_ID = 8
"""Characters that are shown of a run's id; `history show` takes the beginning of one."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text in one style, in rich's words: `bold`, `dim`, `red`. It may be a phrase."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """The spans of one line, with indented lines below it, which make it a tree.

    Attributes:
        is_whole: Whether it is never wrapped, because it is to be copied.
    """

    spans: tuple[Span, ...]
    below: tuple[Line, ...] = ()
    is_whole: bool = False

    def typed(self, options: str) -> str:
        """Return the line with the options of the present call appended to its commands."""
        return "".join(on_terminal(span.text, options) for span in self.spans)

    def __str__(self) -> str:
        return "".join(span.text for span in self.spans)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings; a row has as many cells as there are columns.

    The columns stand in the order of their importance: on a narrow terminal, the last ones move below a row.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Line, ...], ...]


Block = Line | Table


def line(*parts: str | Span, below: Iterable[Line] = ()) -> Line:
    """Return a line of texts and spans, with control characters escaped.

    Example:
        >>> str(line("is ", Span("red", "red")))
        'is red'
    """
    spans = (Span(part) if isinstance(part, str) else part for part in parts)
    return Line(tuple(Span(printable(span.text), span.style) for span in spans), tuple(below))


def labelled(label: str, *parts: str | Span, below: Iterable[Line] = ()) -> Line:
    """Return a line that begins with what it is, such as `do` or `warning`.

    Example:
        >>> str(labelled("do", "mend it"))
        'do: mend it'
    """
    return line(Span(f"{label}: ", LABELS.get(label, "dim")), *parts, below=below)


def table_of(rows: Sequence[Mapping[str, object]], none: str) -> Table | Line:
    """Return rows as a table, whose columns are the names in the first one; without rows, a line.

    A text is written in one line; a span is shown as it is.
    """
    if not rows:
        return line(none)
    return Table(tuple(rows[0]), tuple(tuple(line(_cell(each)) for each in row.values()) for row in rows))


def _cell(value: object) -> str | Span:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, Span):
        return value
    return "" if value is None else " ".join(str(value).split())


def whole(text: str) -> Line:
    """Return a line that is never wrapped: a command to copy, or a line of a file format."""
    return replace(line(text), is_whole=True)


def printable(text: str) -> str:
    r"""Return text with control characters escaped, so that it cannot move the cursor or forge lines.

    Example:
        >>> printable("a\x1b[2Jb")
        'a\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    if isinstance(text, Phrase):
        return Phrase(*map(printable, text.parts))
    return "".join(_escaped(character) for character in text)


def _escaped(character: str) -> str:
    # Cc: control; Cf: invisible formatting such as text that runs from right to left; Zl, Zp: line ends.
    if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp", "Cs"):
        return character.encode("unicode_escape", "surrogatepass").decode("ascii")
    return character


def plain(block: Block, options: str = "", indent: str = "") -> Iterator[str]:
    """Yield a block as lines of text without any style, with options appended to each command."""
    if isinstance(block, Table):
        yield from _plain_table(block, options)
        return
    yield f"{indent}{block.typed(options)}"
    for each in block.below:
        yield from plain(each, options, indent + INDENT)


def _plain_table(table: Table, options: str) -> Iterator[str]:
    rows = [table.columns, *(tuple(cell.typed(options) for cell in row) for row in table.rows)]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    yield from (_aligned(row, widths) for row in rows)


def _aligned(cells: Iterable[str], widths: Iterable[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return GAP.join(padded).rstrip()


LABELS = {"error": "bold red", "fault": "red", "warning": "yellow", "stays": "yellow"}
"""Styles of labels; the others are dim."""

STYLES = {
    "SUCCESS": "green",
    "SUCCESS_WITH_ERRORS": "yellow",
    "WOULD_RUN": "cyan",
    "CLEAN": "dim",
    "SKIPPED": "dim",
    "BLOCKED": "bold yellow",
    "FAILED": "bold red",
    "ABORTED": "bold red",
    "RUNNING": "cyan",
    "NEW": "cyan",
    "PROCESSING": "cyan",
    "PROCESSED": "green",
    "RESOLVED": "yellow",
    "READY": "cyan",
    "LOCKED": "bold yellow",
    "INVALID": "bold red",
    "RETRYING": "yellow",
    "INTERRUPTED": "yellow",
    "PAUSED": "yellow",
    "DUE": "cyan",
}


def status(word: str) -> Span:
    """Return a status, state or verdict in its colour, spelled as given."""
    return Span(word, STYLES.get(word.upper(), ""))


def assignments(values: Mapping[str, object]) -> str:
    """Return `name=value` for each parameter, as typed on the command line."""
    return " ".join(f"{name}={value}" for name, value in values.items())


def took(start: datetime, end: datetime) -> str:
    """Return the duration between two instants."""
    return duration((end - start).total_seconds())


def ago(since: datetime, now: datetime) -> str:
    """Return how long ago an instant was.

    Example:
        >>> ago(datetime(2022, 1, 1), datetime(2022, 1, 1, 3, 20))
        '3 h 20 min ago'
    """
    passed = now - since
    return "just now" if passed < timedelta(seconds=5) else f"{duration(max(passed.total_seconds(), 0))} ago"
