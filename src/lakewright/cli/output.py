"""The output of a command: results to stdout, everything else to stderr.

With `-o json` stdout gets one JSON document and nothing else; text for people goes to stderr.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from lakewright.cli.page import Block, Span, line, plain
from lakewright.manifest.plain import finite
from lakewright.manifest.redact import Redactor

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Output", "is_colourful"]


@dataclass(slots=True)
class Output:
    """Writes to the two streams of a command.

    Attributes:
        schema: Names the form of the document; None if its keys are names. Lists have none.
        options: The options that are appended to each command in a text.
    """

    out: TextIO
    err: TextIO
    environ: Mapping[str, str] = field(default_factory=dict)
    is_json: bool = False
    is_quiet: bool = False
    schema: str | None = None
    options: str = ""
    redactor: Redactor = field(default_factory=Redactor)
    _drawing: Console | None = None

    @property
    def is_live(self) -> bool:
        """Whether progress can be redrawn in place: stderr is a terminal that can move its cursor."""
        return not self.is_quiet and self.err.isatty() and self.environ.get("TERM") != "dumb"

    @property
    def is_one_screen(self) -> bool:
        """Whether the page and the notes are written to the same terminal."""
        return not self.is_json and self.out.isatty() and self.err.isatty()

    @property
    def has_page_errors(self) -> bool:
        """Whether a page tells errors in full: without a terminal they are told once, on stderr."""
        return self.is_json or self.out.isatty()

    @property
    def can_ask(self) -> bool:
        """Whether questions are shown to a user: stderr is a terminal."""
        return self.err.isatty()

    def redacted(self, value: Any) -> Any:
        """Return a text or a JSON value without the secrets known so far."""
        return self.redactor.value(value)

    def document(self, document: Any) -> None:
        """Print the command's one JSON document."""
        shown = self.redacted(document)
        if isinstance(shown, dict) and self.schema is not None:
            shown = {"schema": self.schema, **shown}
        json.dump(finite(shown), self.out, indent=2, ensure_ascii=False, allow_nan=False, default=str)
        self.out.write("\n")
        self.out.flush()

    def result(self, document: Any, blocks: Iterable[Block]) -> None:
        """Print the result: the document with `-o json`, else the page."""
        if self.is_json:
            self.document(document)
        else:
            self.page(blocks)

    def answer(self, document: Any, blocks: Iterable[Block]) -> None:
        """Print what a command was asked for, with `-q`, too: it has nothing else to say."""
        if self.is_json:
            self.document(document)
        else:
            self._write(self._text_stream, blocks)

    def page(self, blocks: Iterable[Block]) -> None:
        """Print a page on stdout, or on stderr if stdout is for JSON."""
        if not self.is_quiet:
            self._write(self._text_stream, blocks)

    def note(self, *blocks: Block | str) -> None:
        """Print text that is not a result to stderr: progress, advice, errors."""
        self._write(self.err, (line(block) if isinstance(block, str) else block for block in blocks))

    def say(self, text: str) -> None:
        """Print a line of a target's own output on stdout, or on stderr if stdout is for JSON."""
        self._write(self._text_stream, [line(text)])

    def question(self, text: str) -> None:
        """Print a question without ending its line."""
        self.err.write(text)
        self.err.flush()

    def last(self, text: str) -> None:
        """Print the last line of a run, with `-q`, too."""
        self._write(self._text_stream, [line(Span(text, "bold"))])

    @property
    def _text_stream(self) -> TextIO:
        return self.err if self.is_json else self.out

    def log(self, text: str) -> None:
        """Print a formatted log record on stderr."""
        if self._drawing is not None:
            self._drawing.print(text, style="dim")
        else:
            self.err.write(f"{text}\n")
            self.err.flush()

    @contextmanager
    def drawing(self) -> Iterator[Console]:
        """Yield the terminal for animated output; anything else printed meanwhile appears above it."""
        self._drawing = _console(self.err, self.environ)
        try:
            yield self._drawing
        finally:
            self._drawing = None

    def _write(self, stream: TextIO, blocks: Iterable[Block]) -> None:
        console = self._drawing
        if console is None and is_colourful(stream, self.environ):
            console = _console(stream, self.environ)
        if console is None:
            texts = (text for block in blocks for text in plain(block, self.options))
            stream.writelines(f"{self.redactor.text(text)}\n" for text in texts)
        else:
            from lakewright.cli.terminal import Terminal

            terminal = Terminal(console, self.redactor, self.options)
            for block in blocks:
                terminal.print(block)
        stream.flush()


def is_colourful(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether a stream is a terminal and `NO_COLOR` is not set."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def _console(stream: TextIO, environ: Mapping[str, str]) -> Console:
    from rich.console import Console

    no_color = bool(environ.get("NO_COLOR"))
    return Console(
        file=stream, highlight=False, markup=False, emoji=False, soft_wrap=False, no_color=no_color
    )
