"""PySpark's log lines of rejected queries, each with the stack trace of Java.

PySpark prints them to stderr by loggers and handlers of its own, whether a program has set up logging or not.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class _Quiet(logging.Filter):
    """Leaves out all records; it counts the blocks that want it, in any thread."""

    blocks = 0

    def filter(self, record: logging.LogRecord) -> bool:
        return False


_quiet = _Quiet()
_lock = threading.RLock()


@contextmanager
def quiet_pyspark() -> Iterator[None]:
    """Keep PySpark from logging rejected queries in the block, whose errors name them.

    After the last block that runs at the same time, PySpark's loggers are as before.
    """
    with _lock:
        _quiet.blocks += 1
        filter_query_logs()
    try:
        yield
    finally:
        with _lock:
            _quiet.blocks -= 1
            if not _quiet.blocks:
                for name in LOGGERS:
                    if name in logging.root.manager.loggerDict:
                        logging.getLogger(name).removeFilter(_quiet)


def filter_query_logs() -> None:
    """Make the blocks of `quiet_pyspark` that run apply to PySpark, once it is imported.

    A block does not import PySpark itself: many need none.
    """
    with _lock:
        if not _quiet.blocks or "pyspark" not in sys.modules:
            return
        from pyspark.logger import PySparkLogger  # a plain logger of the name would fail PySpark

        for name in LOGGERS:
            PySparkLogger.getLogger(name).addFilter(_quiet)
