"""Warnings of the API's calls: Python shows them, also in a program that has not set up logging."""

from __future__ import annotations

import contextlib
import inspect
import logging
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import get_ident

from lakewright.errors import Fault, LakewrightWarning
from lakewright.errors.surfaces import in_python, message_of

__all__ = ["warn", "warn_of", "warned"]

_OURS = str(Path(__file__).parents[1])
_BETWEEN = (_OURS, contextlib.__file__)


@contextlib.contextmanager
def warned() -> Iterator[None]:
    """Issue what this thread logs as a warning in the block as a warning of Python, too, at its end.

    An error that ends the block is told instead.
    """
    logger, found = logging.getLogger("lakewright"), _Collector()
    logger.addHandler(found)
    try:
        with _enabled(logger):
            yield
    finally:
        logger.removeHandler(found)
    for text in found.texts:
        warn(text)


@contextlib.contextmanager
def _enabled(logger: logging.Logger) -> Iterator[None]:
    """Let a logger pass warnings to its own handlers in the block, whatever level the program has set."""
    if logger.isEnabledFor(logging.WARNING):
        yield
        return
    level, propagates = logger.level, logger.propagate
    logger.setLevel(logging.WARNING)
    logger.propagate = False  # the program has asked for silence in its log
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.propagate = propagates


def warn_of(faults: Iterable[Fault]) -> None:
    """Log faults of a project as warnings, and issue them as warnings of Python."""
    with warned():
        for fault in faults:
            logging.getLogger("lakewright.run").warning("%s", fault)


def warn(text: str) -> None:
    """Issue a warning to the caller of the API, with calls for the commands that it names.

    Python shows the line of the caller's program.
    """
    warnings.warn(in_python(text) or text, LakewrightWarning, stacklevel=_level_of_caller())


class _Collector(logging.Handler):
    """Keeps the warnings that the thread which made it logs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []
        self._thread = get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message of a record."""
        if record.thread == self._thread:
            self.texts.append(message_of(record, lambda text: in_python(text) or text))


def _level_of_caller() -> int:
    """Return the level of the first frame outside of the package, counted from the function that asks."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame, level = frame.f_back, level + 1
    return level
