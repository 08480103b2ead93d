"""One session for all tests that need Spark, started when the first of them asks for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakewright.spark.jars import POSTGRES_DRIVER
from lakewright.spark.session import SessionSettings, build_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
FEWEST_LOOKS = 20


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session that a run on this machine would have, with two cores."""
    settings = SessionSettings(
        tmp_path_factory.mktemp("session"), app_name="tests", master="local[2]", drivers=(POSTGRES_DRIVER,)
    )
    session = build_session(settings)
    yield session
    session.stop()


@pytest.fixture
def reading() -> Callable[[Callable[[], Any]], AbstractContextManager[list[Any]]]:
    """Has a reader look at something over and over while the body runs, and gives what it saw."""
    return _reading


@contextmanager
def _reading(look: Callable[[], Any]) -> Iterator[list[Any]]:
    seen: list[Any] = []
    is_over = threading.Event()

    def loop() -> None:
        while not is_over.is_set() or len(seen) < FEWEST_LOOKS:
            try:
                seen.append(look())
            except Exception as error:  # what a reader meets is what the test is about
                seen.append(error)

    reader = threading.Thread(target=loop)
    reader.start()
    try:
        yield seen
    finally:
        is_over.set()
        reader.join()
