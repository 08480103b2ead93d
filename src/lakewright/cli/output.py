"""Where a command's words go: results to stdout, everything else to stderr.

Under `-o json` stdout gets one JSON document and nothing else; what would be read by people goes to stderr.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from lakewright.cli.page import Block, Branch, Line, Span, Table, line, plain
from lakewright.manifest.redact import Redactor

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text
    from rich.tree import Tree

__all__ = ["Output", "is_colourful"]


@dataclass(slots=True)
class Output:
    """The two streams of a command and how they are written to."""

    out: TextIO
    err: TextIO
    environ: Mapping[str, str] = field(default_factory=dict)
    is_json: bool = False
    is_quiet: bool = False
    redactor: Redactor = field(default_factory=Redactor)
    _drawing: Console | None = None

    @property
    def is_live(self) -> bool:
        """Whether progress may be drawn over itself: stderr is a terminal that can move its cursor."""
        return not self.is_quiet and self.err.isatty() and self.environ.get("TERM") != "dumb"

    @property
    def can_ask(self) -> bool:
        """Whether somebody can read a question and answer it."""
        return self.err.isatty()

    def redacted(self, value: Any) -> Any:
        """Return a text or a JSON-able value without the secrets that are known by now."""
        return self.redactor.value(value)

    def document(self, document: Any) -> None:
        """Print the command's one JSON document."""
        finite = _finite(self.redacted(document))
        json.dump(finite, self.out, indent=2, ensure_ascii=False, allow_nan=False, default=str)
        self.out.write("\n")
        self.out.flush()

    def result(self, document: Any, blocks: Iterable[Block]) -> None:
        """Print what the command found: the document under `-o json`, else the page."""
        if self.is_json:
            self.document(document)
        else:
            self.page(blocks)

    def page(self, blocks: Iterable[Block]) -> None:
        """Print a page on stdout; on stderr where stdout is for JSON."""
        if not self.is_quiet:
            self._write(self._people, blocks)

    def note(self, *blocks: Block | str) -> None:
        """Print what is no result: progress, advice, questions, errors."""
        self._write(self.err, (line(block) if isinstance(block, str) else block for block in blocks))

    def say(self, text: str) -> None:
        """Print a line of a target's own output; on stderr where stdout is for JSON."""
        self._write(self._people, [line(text)])

    def question(self, text: str) -> None:
        """Print a question without ending its line."""
        self.err.write(text)
        self.err.flush()

    def last(self, text: str) -> None:
        """Print the line that a run ends with, also where all else is quiet."""
        self._write(self._people, [line(Span(text, "bold"))])

    @property
    def _people(self) -> TextIO:
        return self.err if self.is_json else self.out

    def log(self, text: str) -> None:
        """Print what logging made, as it is, on stderr."""
        if self._drawing is not None:
            self._drawing.print(text, style="dim")
        else:
            self.err.write(f"{text}\n")
            self.err.flush()

    @contextmanager
    def drawing(self) -> Iterator[Console]:
        """Lend the terminal for something that moves; whatever else is printed then appears above it."""
        self._drawing = _console(self.err, self.environ)
        try:
            yield self._drawing
        finally:
            self._drawing = None

    def _write(self, stream: TextIO, blocks: Iterable[Block]) -> None:
        console = self._drawing
        if console is None and is_colourful(stream, self.environ):
            console = _console(stream, self.environ)
        for block in blocks:
            if console is not None:
                console.print(_Rich(self.redactor).of(block))
            else:
                stream.writelines(f"{self.redactor.text(text)}\n" for text in plain(block))
        stream.flush()


def _finite(value: Any) -> Any:
    """Return a JSON-able value with the numbers that JSON doesn't know as texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list) else value


def is_colourful(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether a stream is a terminal whose user didn't ask for `NO_COLOR`."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def _console(stream: TextIO, environ: Mapping[str, str]) -> Console:
    from rich.console import Console

    no_color = bool(environ.get("NO_COLOR"))
    return Console(
        file=stream, highlight=False, markup=False, emoji=False, soft_wrap=False, no_color=no_color
    )


@dataclass(frozen=True, slots=True)
class _Rich:
    """Makes pages into what rich draws."""

    redactor: Redactor

    def of(self, block: Block) -> RenderableType:
        if isinstance(block, Branch):
            return self.tree(block)
        return self.table(block) if isinstance(block, Table) else self.text(block)

    def text(self, content: Line) -> Text:
        from rich.text import Text

        return Text.assemble(*((self.redactor.text(span.text), span.style) for span in content.spans))

    def tree(self, branch: Branch) -> Tree:
        from rich.tree import Tree

        tree = Tree(self.text(branch.line), guide_style="dim")
        self._grow(tree, branch.children)
        return tree

    def _grow(self, tree: Tree, children: Iterable[Branch]) -> None:
        for child in children:
            self._grow(tree.add(self.text(child.line)), child.children)

    def table(self, table: Table) -> RenderableType:
        from rich.table import Table as RichTable

        drawn = RichTable(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for column in table.columns:
            drawn.add_column(column, overflow="fold")
        for row in table.rows:
            drawn.add_row(*(self.text(cell) for cell in row))
        return drawn
