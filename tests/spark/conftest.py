"""One session for all tests that need Spark, started when the first of them asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakewright.lake.session import SessionSettings, build_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session that a run on this machine would have, with two cores."""
    settings = SessionSettings(tmp_path_factory.mktemp("session"), app_name="tests", master="local[2]")
    session = build_session(settings)
    yield session
    session.stop()
