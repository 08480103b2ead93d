"""Issue 11: in a notebook's session, undo and rebuild do not print the snapshots of tables they swap."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError

from lakewright.spark.loggers import DELTA_LOGGER, without_id_warnings


class Log4j:
    """Log4j's classes as Py4J shows them."""

    def __init__(self, **loggers: str) -> None:
        self.loggers = dict(loggers)
        self.seen: list[dict[str, str]] = []
        configuration = SimpleNamespace(
            getLoggers=lambda: SimpleNamespace(containsKey=self.loggers.__contains__),
            addLogger=self.loggers.__setitem__,
            removeLogger=self.loggers.__delitem__,
        )
        context = SimpleNamespace(
            getConfiguration=lambda: configuration, updateLoggers=lambda: self.seen.append(dict(self.loggers))
        )
        self.LogManager = SimpleNamespace(getContext=lambda _: context)
        self.Level = SimpleNamespace(ERROR="ERROR")
        self.core = SimpleNamespace(
            config=SimpleNamespace(LoggerConfig=lambda _name, level, _additive: level)
        )


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(log4j: object) -> None:
        apache = SimpleNamespace(logging=SimpleNamespace(log4j=log4j))
        context = SimpleNamespace(_jvm=SimpleNamespace(org=SimpleNamespace(apache=apache)))
        active = SimpleNamespace(_active_spark_context=context)
        monkeypatch.setitem(sys.modules, "pyspark", cast("Any", SimpleNamespace(SparkContext=active)))

    return install


def test_the_logger_is_quiet_in_the_block_and_as_before_after_it(pretend: Any) -> None:
    log4j = Log4j(root="WARN")
    pretend(log4j)
    with without_id_warnings(is_shared=True):
        assert log4j.loggers == {"root": "WARN", DELTA_LOGGER: "ERROR"}
    assert log4j.loggers == {"root": "WARN"}
    assert log4j.seen == [{"root": "WARN", DELTA_LOGGER: "ERROR"}, {"root": "WARN"}], "Log4j was told of each"


def test_a_level_that_the_user_chose_is_kept(pretend: Any) -> None:
    log4j = Log4j(**{DELTA_LOGGER: "DEBUG"})
    pretend(log4j)
    with without_id_warnings(is_shared=True):
        assert log4j.loggers == {DELTA_LOGGER: "DEBUG"}
    assert (log4j.loggers, log4j.seen) == ({DELTA_LOGGER: "DEBUG"}, [])


def test_a_session_of_ours_and_another_logging_are_left_alone(pretend: Any) -> None:
    log4j = Log4j()
    pretend(log4j)
    with without_id_warnings(is_shared=False):
        assert log4j.loggers == {}

    def fail(_: bool) -> None:
        raise Py4JError("there is no such method")

    pretend(SimpleNamespace(LogManager=SimpleNamespace(getContext=fail)))
    with without_id_warnings(is_shared=True):
        pass
