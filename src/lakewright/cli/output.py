"""The output of a command: results to stdout, everything else to stderr, log lines as text or JSON.

With `-o json` stdout gets one JSON document and nothing else; text for people goes to stderr. Logging is set
up here and nowhere else, without secrets.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from lakewright.cli.page import GAP, INDENT, Block, Line, Span, Table, labelled, line, plain, printable
from lakewright.errors.phrase import Command, Phrase
from lakewright.errors.surfaces import message_of, on_terminal, typed
from lakewright.manifest.plain_values import finite
from lakewright.manifest.redaction import Redactor
from lakewright.spark.loggers import quiet_pyspark

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


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
        """Whether a page shows errors in full: without a terminal they are printed once, on stderr."""
        return self.is_json or self.out.isatty()

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
        self.answer(document, () if self.is_quiet else blocks)

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

    def forward(self, text: str) -> None:
        """Print a text to stderr as it is, without ending its line."""
        self.err.write(text)
        self.err.flush()

    def labelled(self, label: str, texts: Iterable[str]) -> None:
        """Print each text to stderr, after what it is, such as `warning`."""
        self.note(*(labelled(label, text) for text in texts))

    def json_line(self, document: Any) -> None:
        """Print a document as one line of JSON."""
        self.out.write(json.dumps(self.redacted(document), ensure_ascii=False, default=str) + "\n")
        self.out.flush()

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
            self.forward(f"{text}\n")

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
    return Console(file=stream, highlight=False, markup=False, emoji=False, no_color=no_color)


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
        return self._table(block) if isinstance(block, Table) else self._tree(block, "", "")

    def _tree(self, content: Line, first: str, rest: str) -> Iterator[Text]:
        yield from self._wrapped(content, first, f"{rest}│   " if content.below else rest)
        for each in content.below:
            mark, deeper = ("└── ", "    ") if each is content.below[-1] else ("├── ", "│   ")
            yield from self._tree(each, rest + mark, rest + deeper)

    def _wrapped(self, content: Line, first: str, rest: str) -> Iterator[Text]:
        """Yield a line after the guides of a tree, in as many lines as it needs, then its commands."""
        text = self._text(content)
        if content.is_whole:
            yield self._plain(first, "dim") + text
            return
        commands: list[str] = []
        width = max(self.console.width - len(rest), _NARROWEST)
        if text.cell_len > width and (found := _commands(content)):
            commands = [typed(each, self.options) for each in found]
            text = self._text(_without_commands(content))
        for part in text.wrap(self.console, width):
            part.rstrip()
            yield self._plain(first, "dim") + part
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
        # A word that is longer than the terminal, such as a path, is not broken.
        shown = ((self.redactor.text(text), style) for text, style in spans)
        return Text.assemble(*shown, overflow="ignore")

    def _plain(self, text: str, style: str = "") -> Text:
        return self._text(line(Span(text, style)))


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


OURS = "lakewright"
SILENT = logging.CRITICAL + 1
SAME = frozenset({"run_id", "job"})
"""Fields that are the same on every line of a console; only collectors of JSON lines need them."""

Redacted = Callable[[Any], Any]
"""Removes secrets from a text or a JSON value."""

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _text_line(record: logging.LogRecord, redacted: Redacted, shown: Callable[[str], str]) -> str:
    """Return a record as one line: time, level, message, then `key=value` for fields that the message lacks.

    The lines of a traceback follow indented.
    """
    message = message_of(record, shown)
    new = {k: v for k, v in _carried(record).items() if k not in SAME and not _is_said(v, message)}
    carried = "".join(f" {key}={value}" for key, value in new.items())
    head = f"{_instant(record)} {record.levelname} {message}{carried}"
    lines = [head, *(f"    {inner}" for inner in (_trace(record) or "").splitlines())]
    return "\n".join(printable(str(redacted(text))) for text in lines)


def _is_said(value: object, message: str) -> bool:
    """Return whether a message contains a text; numbers never count, as names may contain their digits."""
    return isinstance(value, str) and value in message


def _json_line(record: logging.LogRecord, redacted: Redacted) -> str:
    """Return a record as one JSON object: timestamp, level, logger, message and extra fields."""
    document: dict[str, Any] = {
        "timestamp": _instant(record),
        "level": record.levelname,
        "logger": record.name,
        "message": record.getMessage(),
        **_carried(record),
    }
    if (trace := _trace(record)) is not None:
        document["exception"] = trace
    return json.dumps(redacted(document), ensure_ascii=True, default=str)


class LineHandler(logging.Handler):
    """Passes each record as text to a function, so that progress on a terminal can make room for it."""

    def __init__(self, write: Callable[[str], None], formatted: Callable[[logging.LogRecord], str]) -> None:
        super().__init__()
        self._write = write
        self._formatted = formatted

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; the logging module reports a failure to do so."""
        try:
            self._write(self._formatted(record))
        except Exception:  # a failure to log must not stop the command
            self.handleError(record)


@contextmanager
def logging_to(
    write: Callable[[str], None],
    *,
    is_json: bool,
    level: int,
    redacted: Redacted,
    shown: Callable[[str], str] = str,
) -> Iterator[None]:
    """Write log records line by line in the `with` block; the previous settings are restored afterwards.

    Only Lakewright's own loggers get `level`; those of libraries stay at warnings. Py4J is silent: it logs a
    traceback for every call that an interruption, or the end of its JVM, cuts short, some by the root logger.
    So is PySpark of queries that fail: whoever catches the error reports it.

    Args:
        write: Writes a line.
        is_json: Whether each line is a JSON object.
        level: The lowest level of Lakewright's records.
        redacted: Removes secrets.
        shown: Returns a text with commands as they are typed; JSON has the plain text.
    """
    as_text = partial(_text_line, redacted=redacted, shown=shown)
    handler = LineHandler(write, partial(_json_line, redacted=redacted) if is_json else as_text)
    handler.addFilter(lambda record: record.module != "java_gateway")
    root = logging.getLogger()
    wanted = {root: logging.WARNING, logging.getLogger(OURS): level, logging.getLogger("py4j"): SILENT}
    before = {logger: logger.level for logger in wanted}
    root.addHandler(handler)
    try:
        for logger, own in wanted.items():
            logger.setLevel(own)
        with quiet_pyspark():
            yield
    finally:
        root.removeHandler(handler)
        for logger, own in before.items():
            logger.setLevel(own)


def _instant(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _carried(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in STANDARD}


def _trace(record: logging.LogRecord) -> str | None:
    return logging.Formatter().formatException(record.exc_info) if record.exc_info else None
