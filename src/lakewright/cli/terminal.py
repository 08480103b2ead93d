"""Pages on a terminal: trees with guides, tables that fit its width, and commands that can be copied.

Lines are wrapped at spaces only, so that names and ids stay whole. A command is never wrapped: if its line
doesn't fit, it stands below, alone and unindented, and the terminal breaks it without a line end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.cli.page import GAP, INDENT, Block, Branch, Line, Span, Table, line
from lakewright.errors.phrase import Command, Phrase
from lakewright.errors.surfaces import on_terminal, typed
from lakewright.manifest.redact import Redactor

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["Terminal"]

_NARROWEST = 20
"""Columns left for text in a deep tree; a longer line than the terminal is better than a column of words."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """Prints pages on a console."""

    console: Console
    redactor: Redactor
    options: str = ""

    def print(self, block: Block) -> None:
        """Print a block."""
        for text in self._texts(block):
            # The lines are broken already; what is longer than the terminal is meant so.
            self.console.print(text, soft_wrap=True)

    def _texts(self, block: Block) -> Iterator[Text]:
        if isinstance(block, Branch):
            yield from self._branch(block, "", "")
        elif isinstance(block, Table):
            yield from self._table(block)
        else:
            yield from self._wrapped(block, "", "")

    def _branch(self, branch: Branch, first: str, rest: str) -> Iterator[Text]:
        below = f"{rest}│   " if branch.children else rest
        yield from self._wrapped(branch.line, first, below)
        for child in branch.children:
            is_last = child is branch.children[-1]
            mark, deeper = ("└── ", "    ") if is_last else ("├── ", "│   ")
            yield from self._branch(child, rest + mark, rest + deeper)

    def _wrapped(self, content: Line, first: str, rest: str) -> Iterator[Text]:
        """Yield a line after the guides of a tree, in as many lines as it needs, then its commands."""
        text = self._text(content)
        if content.is_whole:
            yield self._guide(first) + text
            return
        commands: list[str] = []
        width = max(self.console.width - len(rest), _NARROWEST)
        if text.cell_len > width and (found := _commands(content)):
            commands = [typed(each, self.options) for each in found]
            text = self._text(_without_commands(content))
        for part in text.divide(list(_breaks(text.plain, width))):
            part.rstrip()
            yield self._guide(first) + part
            first = rest
        yield from map(self._plain, commands)

    def _table(self, table: Table) -> Iterator[Text]:
        rows = [[self._text(cell) for cell in row] for row in table.rows]
        heads = [self._plain(name, "bold") for name in table.columns]
        widths = [max(cell.cell_len for cell in cells) for cells in zip(heads, *rows, strict=True)]
        shown = _fitting(widths, self.console.width)
        for cells in (heads, *rows):
            padded = [cell.copy() for cell in cells[:shown]]
            for cell, width in zip(padded, widths, strict=False):
                cell.pad_right(width - cell.cell_len)
            row = self._plain(GAP).join(padded)
            row.rstrip()
            yield row
            if cells is heads:
                continue
            for head, cell in list(zip(heads, cells, strict=True))[shown:]:
                if cell.plain:
                    yield self._plain(f"{INDENT}{head.plain}: ", "dim") + cell

    def _text(self, content: Line) -> Text:
        from rich.text import Text

        spans = ((on_terminal(span.text, self.options), span.style) for span in content.spans)
        return Text.assemble(*((self.redactor.text(text), style) for text, style in spans))

    def _plain(self, text: str, style: str = "") -> Text:
        return self._text(line(Span(text, style)))

    def _guide(self, guide: str) -> Text:
        return self._text(Line((Span(guide, "dim"),)))


def _breaks(text: str, width: int) -> Iterator[int]:
    """Yield the positions at which lines begin so that they fit, as far as words do; none is split."""
    from rich.cells import cell_len

    used = 0
    for word in re.finditer(r"\S+\s*", text):
        length = cell_len(word.group())
        if used and used + cell_len(word.group().rstrip()) > width:
            yield word.start()
            used = 0
        used += length


def _without_commands(content: Line) -> Line:
    """Return a line in which commands, which are printed below it, are cut to their first words."""
    return Line(tuple(Span("".join(map(_cut, _parts(span))), span.style) for span in content.spans))


def _parts(span: Span) -> tuple[str, ...]:
    return span.text.parts if isinstance(span.text, Phrase) else (str(span.text),)


def _commands(content: Line) -> list[Command]:
    return [part for span in content.spans for part in _parts(span) if isinstance(part, Command)]


def _cut(part: str) -> str:
    if not isinstance(part, Command):
        return part
    return f"`{Command(*part.argv[:2])} …`" if len(part.argv) > 2 else f"`{part}`"


def _fitting(widths: Iterable[int], width: int) -> int:
    """Return how many columns fit; the first ones are the most important, and one is always shown."""
    used, count = -len(GAP), 0
    for each in widths:
        used += each + len(GAP)
        if used > width:
            break
        count += 1
    return max(count, 1)
