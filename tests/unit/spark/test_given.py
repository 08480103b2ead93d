"""A session that another program started is checked before it is used (A1)."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import ParseException

from lakewright.errors import SparkUnavailable
from lakewright.spark.session import CATALOG_KEY, DELTA_CATALOG, DELTA_EXTENSION, check_given_session

ICEBERG = "org.apache.iceberg.spark.SparkSessionCatalog"


class Parser:
    def __init__(self, *, has_delta: bool) -> None:
        self.has_delta = has_delta

    def parsePlan(self, statement: str) -> None:  # noqa: N802 - Spark's name
        if not self.has_delta:
            raise ParseException(statement)


class Java:
    """The JVM's session, whose new sessions have the same parser."""

    def __init__(self, *, has_delta: bool) -> None:
        self.parser = Parser(has_delta=has_delta)

    def newSession(self) -> Java:  # noqa: N802 - Spark's name
        return self

    def sessionState(self) -> SimpleNamespace:  # noqa: N802 - Spark's name
        return SimpleNamespace(sqlParser=lambda: self.parser)


def session(
    *,
    has_delta: bool = True,
    is_stopped: bool = False,
    conf: dict[str, str] | None = None,
    version: str = "4.2.0",
) -> Any:
    jvm = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: is_stopped))
    return SimpleNamespace(
        _jsparkSession=Java(has_delta=has_delta),
        sparkContext=SimpleNamespace(_jsc=jvm),
        conf=conf or {},
        version=version,
    )


@pytest.mark.parametrize("catalog", [{}, {CATALOG_KEY: DELTA_CATALOG}])
def test_a_session_with_delta_is_taken_a1(catalog: dict[str, str]) -> None:
    check_given_session(session(conf=catalog))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (session(has_delta=False), f"it lacks spark.sql.extensions={DELTA_EXTENSION}"),
        (session(conf={CATALOG_KEY: ICEBERG}), f"{CATALOG_KEY}={DELTA_CATALOG} (it is {ICEBERG})"),
        (session(is_stopped=True), "has been stopped"),
        (session(version="3.5.6"), "Spark 3.5.6 is not supported"),
        (SimpleNamespace(), "is of type SimpleNamespace, not SparkSession"),
    ],
)
def test_a_session_that_lacks_something_is_refused_with_what_to_do_a1(given: Any, told: str) -> None:
    with pytest.raises(SparkUnavailable) as refused:
        check_given_session(cast("Any", given))
    assert told in refused.value.message
    assert refused.value.remedy


def test_the_remedy_is_the_settings_to_add_a1() -> None:
    with pytest.raises(SparkUnavailable, match=DELTA_EXTENSION) as refused:
        check_given_session(session(has_delta=False))
    assert f'.config("{CATALOG_KEY}", "{DELTA_CATALOG}")' in str(refused.value.remedy)
    assert "io.delta:delta-spark_" in str(refused.value.remedy)
    page = (Path(__file__).parents[3] / "docs" / "python.md").read_text()
    settings = re.findall(r"\.config\(.+?\)", str(refused.value.remedy))
    assert len(settings) == 3
    assert all(setting in page for setting in settings), "the page on Python lists them, too"
