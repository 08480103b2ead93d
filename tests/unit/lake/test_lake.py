"""The session that all of a run shares."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, cast

import pytest
from tests.projects import make_project
from tests.sessions import Started

from lakewright.cli.progress import LoggedProgress
from lakewright.errors import SparkUnavailable
from lakewright.lake.lake import Lake
from lakewright.spark.conf import SessionSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Gone:
    """A session whose JVM has ended."""

    def stop(self) -> None:
        raise ConnectionRefusedError("nobody listens")


def test_a_session_whose_jvm_has_gone_ends_without_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = make_project(tmp_path, "").lake
    lake = Lake(
        settings,
        SessionSettings(tmp_path),
        sessions=Started(lambda _: cast("SparkSession", Gone()), stops=True),
    )
    assert lake.spark is not None
    lake.stop()
    assert "had ended already: nobody listens" in caplog.text
    assert not lake.is_started


def lake_whose_start_waits(tmp_path: Path, begin: Callable[[SessionSettings], SparkSession]) -> Lake:
    """Return a lake with what starts its session."""
    settings = make_project(tmp_path, "").lake
    return Lake(settings, SessionSettings(tmp_path), sessions=Started(begin, stops=True))


def test_an_abandoned_start_fails_and_nothing_says_that_spark_has_started(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B8: Ctrl-C while Spark starts in another thread; the session that comes too late is stopped."""
    begins, goes_on, stopped = Event(), Event(), Event()

    class Late:
        def stop(self) -> None:
            stopped.set()

    def begin(_: SessionSettings) -> SparkSession:
        begins.set()
        assert goes_on.wait(60)
        return cast("SparkSession", Late())

    lake = lake_whose_start_waits(tmp_path, begin)
    lake.starting = LoggedProgress({}).spark_starting
    caplog.set_level(logging.INFO)
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(lambda: lake.spark)
        assert begins.wait(60)
        lake.abandon_start()
        lake.stop()
        goes_on.set()
        with pytest.raises(SparkUnavailable, match="the start of Spark was interrupted"):
            started.result(60)
    assert stopped.is_set()
    assert not lake.is_started
    assert [record.message for record in caplog.records] == ["Spark starts"]


def test_there_is_nothing_to_abandon_before_spark_starts(tmp_path: Path) -> None:
    lake = lake_whose_start_waits(tmp_path, lambda _: cast("SparkSession", Gone()))
    lake.abandon_start()
    assert lake.spark is not None
