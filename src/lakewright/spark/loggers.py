"""Log lines of PySpark and Delta that only repeat, at length, what Lakewright reports or causes itself.

PySpark prints each rejected query with the stack trace of Java to stderr, by loggers and handlers of its own,
whether a program has set up logging or not.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from lakewright.spark.jvm import active_packages

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


DELTA_LOGGER = "org.apache.spark.sql.delta.DeltaLog"


@contextmanager
def without_id_warnings(*, is_shared: bool) -> Iterator[None]:
    """Keep Delta's logs of tables from printing warnings in the block; errors are printed.

    A session that Lakewright starts logs errors only. In one that it shares, Delta prints the whole of two
    snapshots when the id of a table changes ("Change in the table id detected while updating snapshot"), as a
    swap changes it. A level that the user gave this logger is kept, and so is another logging than Log4j's.
    """
    configured = _quieten() if is_shared else None
    try:
        yield
    finally:
        if configured is not None:
            from py4j.protocol import Py4JError

            with suppress(Py4JError, ConnectionError):  # the JVM has ended, and the block reports it
                configured.getConfiguration().removeLogger(DELTA_LOGGER)
                configured.updateLoggers()


def _quieten() -> Any:
    """Give the logger a level of its own, and return the context in which it has to be removed; else None."""
    packages = active_packages()
    if packages is None:
        return None
    from py4j.protocol import Py4JError

    try:
        log4j = packages.org.apache.logging.log4j
        found = log4j.LogManager.getContext(False)
        configuration = found.getConfiguration()
        if configuration.getLoggers().containsKey(DELTA_LOGGER):
            return None
        level = log4j.Level.ERROR
        configuration.addLogger(DELTA_LOGGER, log4j.core.config.LoggerConfig(DELTA_LOGGER, level, True))
        found.updateLoggers()
    except (Py4JError, ConnectionError, TypeError):  # the JVM logs by other means
        return None
    return found
