"""A warning of Delta that a swap causes itself, in a Spark session whose logging is the user's.

A session that Lakewright starts logs errors only. In another one, Delta prints the whole of two snapshots
when the id of a table changes ("Change in the table id detected while updating snapshot"): a swap changes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from lakewright.spark.jvm import active_packages

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake


LOGGER = "org.apache.spark.sql.delta.DeltaLog"


@contextmanager
def without_id_warnings(lake: Lake) -> Iterator[None]:
    """Keep Delta's logs of tables from printing warnings in the block; errors are printed.

    A level that the user gave this logger is kept, and so is another logging than Log4j's.
    """
    configured = _quieten() if lake.sessions.is_shared else None
    try:
        yield
    finally:
        if configured is not None:
            from py4j.protocol import Py4JError

            with suppress(Py4JError, ConnectionError):  # the JVM has ended, and the block reports it
                configured.getConfiguration().removeLogger(LOGGER)
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
        if configuration.getLoggers().containsKey(LOGGER):
            return None
        level = log4j.Level.ERROR
        configuration.addLogger(LOGGER, log4j.core.config.LoggerConfig(LOGGER, level, True))
        found.updateLoggers()
    except (Py4JError, ConnectionError, TypeError):  # the JVM logs by other means
        return None
    return found
