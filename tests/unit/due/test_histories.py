"""Random histories of small lakes: doing what is due and deciding what is asked makes them right.

A session stands in for Spark's; that Spark does the same is shown by tests/spark/due/test_histories.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.small_histories import Life

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_deciding_for_the_newest_content_in_its_place_gives_a_fresh_table(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    life = Life.begun(tmp_path / "project", spark, seed)
    for lived in (life.grow(), life.become_fresh()):
        for _ in lived:
            pass


@pytest.mark.parametrize("seed", SEEDS[::2])
def test_whatever_happens_and_whatever_is_decided_it_ends(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    """Rules, "Shown by": deciding at random among choices, it ends within a bound, and the plan is empty."""
    life = Life.begun(tmp_path / "project", spark, seed)
    for lived in (life.grow(), life.end()):
        for _ in lived:
            pass
