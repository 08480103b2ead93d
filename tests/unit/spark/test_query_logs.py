"""PySpark's log lines of rejected queries are left out only where Lakewright tells the error."""

from __future__ import annotations

import logging
import sys
from threading import Event, Thread

import pytest
from pyspark.logger import PySparkLogger

from lakewright.spark.loggers import filter_query_logs, quiet_pyspark

NAME = "SQLQueryContextLogger"


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of what PySpark logs; in other tests, its loggers are silent."""
    found: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    monkeypatch.delitem(logging.root.manager.loggerDict, NAME)
    PySparkLogger.getLogger(NAME).handlers[:] = [Kept()]
    return found


def reject(text: str) -> None:
    PySparkLogger.getLogger(NAME).error(text, errorClass="UNRESOLVED_COLUMN")


def test_nothing_is_logged_in_a_block_and_everything_after_it(records: list[str]) -> None:
    logger = PySparkLogger.getLogger(NAME)
    with quiet_pyspark():
        reject("in the outer block")
        with quiet_pyspark():
            reject("in the inner block")
        reject("in the outer block again")
    reject("after it")
    assert records == ["after it"]
    assert (logger.filters, logger.disabled) == ([], False)


def test_blocks_of_several_threads_end_in_any_order(records: list[str]) -> None:
    begun, ended = Event(), Event()

    def read() -> None:
        with quiet_pyspark():
            begun.set()
            ended.wait(10)

    thread = Thread(target=read)
    with quiet_pyspark():
        thread.start()
        begun.wait(10)
    reject("while the other thread reads")
    ended.set()
    thread.join()
    reject("after both")
    assert records == ["after both"]


def test_a_logger_that_the_user_has_disabled_stays_so(records: list[str]) -> None:
    logger = PySparkLogger.getLogger(NAME)
    logger.disabled = True
    try:
        with quiet_pyspark():
            pass
        assert logger.disabled
    finally:
        logger.disabled = False


def test_pyspark_is_not_imported_for_it(records: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pyspark = sys.modules["pyspark"]
    monkeypatch.delitem(sys.modules, "pyspark")
    with quiet_pyspark():
        assert "pyspark" not in sys.modules
        sys.modules["pyspark"] = pyspark
        filter_query_logs()  # as the start of a session does
        reject("in the block")
    assert records == []
