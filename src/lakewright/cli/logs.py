"""Logging, set up here and nowhere else: to stderr, as text or JSON lines, without secrets."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from lakewright.cli.page import printable
from lakewright.errors.surfaces import message_of

__all__ = ["logging_to"]

OURS = "lakewright"
SILENT = logging.CRITICAL + 1
PYSPARKS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
SAME = frozenset({"run_id", "job"})
"""Fields that are the same on every line of a console; only collectors of JSON lines need them."""

Redacted = Callable[[Any], Any]
"""Removes secrets from a text or a JSON value."""

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class TextFormatter(logging.Formatter):
    """One line per record: time, level, message, then `key=value` for fields that the message lacks."""

    def __init__(self, redacted: Redacted, shown: Callable[[str], str]) -> None:
        super().__init__()
        self._redacted = redacted
        self._shown = shown

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text; the lines of a traceback follow indented."""
        message = message_of(record, self._shown)
        new = {k: v for k, v in _carried(record).items() if k not in SAME and not _is_said(v, message)}
        carried = "".join(f" {key}={value}" for key, value in new.items())
        head = f"{_instant(record)} {record.levelname} {message}{carried}"
        trace = _trace(record)
        lines = [head, *(f"    {inner}" for inner in (trace or "").splitlines())]
        return "\n".join(printable(str(self._redacted(text))) for text in lines)


def _is_said(value: object, message: str) -> bool:
    """Return whether a message contains a text; numbers never count, as names may contain their digits."""
    return isinstance(value, str) and value in message


class JsonFormatter(logging.Formatter):
    """One JSON object per line, for collectors."""

    def __init__(self, redacted: Redacted) -> None:
        super().__init__()
        self._redacted = redacted

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON: timestamp, level, logger, message and extra fields."""
        document: dict[str, Any] = {
            "timestamp": _instant(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_carried(record),
        }
        if (trace := _trace(record)) is not None:
            document["exception"] = trace
        return json.dumps(self._redacted(document), ensure_ascii=True, default=str)


class LineHandler(logging.Handler):
    """Passes each formatted record to a function, so that progress on a terminal can make room for it."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; the logging module reports a failure to do so."""
        try:
            self._write(self.format(record))
        except Exception:  # a failure to log must not stop the command
            self.handleError(record)


class Silent(logging.Logger):
    """A logger without `exception`, with which PySpark logs each error and its Java trace.

    The code that catches an error of Spark reports it once, in plain words and without secrets.
    """

    def exception(self, msg: object, *args: object, **kwargs: Any) -> None:
        """Do nothing."""


def silence(names: Iterable[str]) -> None:
    """Make the loggers of these names silent, unless they exist already."""
    usual = logging.getLoggerClass()
    logging.setLoggerClass(Silent)
    try:
        for name in names:
            logging.getLogger(name)
    finally:
        logging.setLoggerClass(usual)


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

    Args:
        write: Writes a line.
        is_json: Whether each line is a JSON object.
        level: The lowest level of Lakewright's records.
        redacted: Removes secrets.
        shown: Returns a text with commands as they are typed; JSON has the plain text.
    """
    silence(PYSPARKS)
    handler = LineHandler(write)
    handler.addFilter(lambda record: record.module != "java_gateway")
    handler.setFormatter(JsonFormatter(redacted) if is_json else TextFormatter(redacted, shown))
    root = logging.getLogger()
    wanted = {root: logging.WARNING, logging.getLogger(OURS): level, logging.getLogger("py4j"): SILENT}
    before = {logger: logger.level for logger in wanted}
    root.addHandler(handler)
    try:
        for logger, own in wanted.items():
            logger.setLevel(own)
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
    if not record.exc_info:
        return None
    return logging.Formatter().formatException(record.exc_info)
