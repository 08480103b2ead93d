"""The benchmark of reading measures two ways to the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from benchmarks.reading import CASES, measure, read_by_hand, read_typed, written
from tests.spark.strategies.bench import SmallLake

from lakewright.lake.commit import strict_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    "name",
    [
        "Parquet, many parts",
        *(pytest.param(name, marks=pytest.mark.nightly) for name in CASES if name != "Parquet, many parts"),
    ],
)
def test_both_ways_give_the_same_rows(spark: SparkSession, tmp_path: Path, name: str) -> None:
    lake, case = SmallLake(spark, tmp_path).lake, CASES[name]
    session = strict_session(lake)
    place = written(tmp_path, session, case, 20, 2)
    frames = [read(lake, session, place, case) for read in (read_typed, read_by_hand)]
    one, other = (frame.select(*frames[1].columns).collect() for frame in frames)
    assert len(one) == 20
    assert sorted(map(repr, one)) == sorted(map(repr, other))


@pytest.mark.nightly
def test_each_case_is_measured(spark: SparkSession, tmp_path: Path) -> None:
    lake = SmallLake(spark, tmp_path).lake
    found = measure(lake, strict_session(lake), tmp_path, 1, rows=20, parts=2)
    assert list(found) == list(CASES)
