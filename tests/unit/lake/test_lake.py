"""The session that all of a run shares."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from tests.projects import make_project
from tests.sessions import Started

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
