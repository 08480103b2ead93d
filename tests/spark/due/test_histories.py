"""Small real lakes: doing what is due and deciding what is asked makes them right, and so does the stand-in.

Most tests of `apply` run on a stand-in for Spark (`tests/plain`). Here the same things happen to a lake with
Spark and to one with the stand-in, and after each of them both have the same plan and the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.plain.engine import standing_in
from tests.plain.session import plain_session
from tests.small_gold import by_day, delta
from tests.small_histories import Life, lose_manifest, seen
from tests.small_project import SmallProject
from tests.spark.due.histories import SEEDS

from lakewright.due.plan import Action

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module", autouse=True)
def stand_in() -> Iterator[None]:
    with standing_in():
        yield


def alike(tmp_path: Path, spark: SparkSession, seed: int, *ways: Callable[[Life], Iterator[None]]) -> None:
    """Let the same happen to two lakes, with Spark and with the stand-in; compare them after each thing."""
    lives = [
        Life.begun(tmp_path / name / "project", session, seed)
        for name, session in (("spark", spark), ("plain", plain_session()))
    ]
    for way in ways:
        for _ in zip(*map(way, lives), strict=True):
            real, stood_in = (seen(life.project) for life in lives)
            assert stood_in == real


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_deciding_for_the_newest_content_in_its_place_gives_a_fresh_table(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    alike(tmp_path, spark, seed, Life.grow, Life.become_fresh)


@pytest.mark.parametrize("seed", SEEDS[1::3])
def test_whatever_happens_and_whatever_is_decided_it_ends(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    """Rules, "Shown by": deciding at random among choices, it ends within a bound, and the plan is empty."""
    alike(tmp_path, spark, seed, Life.grow, Life.end)


def days(folder: Path, session: SparkSession) -> Iterator[SmallProject]:
    """Yield a lake whose slices belong to days, after each thing that happens to it."""
    gold = by_day()
    days = gold["targets"]["days"]
    relation = {**days["relation"], "location": delta("added")["location"]}
    gold["targets"]["added"] = {**days, "relation": relation, "mode": "APPEND"}
    project = SmallProject(folder, session, strategy="historic", by_day=True, gold=gold)
    project.put("01", {1: 1, 2: 2})
    project.put("02", {2: 3})
    yield project
    project.done()
    yield project
    project.put("01", {1: 11})
    project.decide("people/01.csv", "take")
    yield project
    project.apply()
    yield project
    lose_manifest(project)
    assert Action.RECORD in {each.action for each in project.plan().ready}
    yield project
    project.apply()
    yield project


def test_slices_and_builds_of_days_are_those_of_spark(tmp_path: Path, spark: SparkSession) -> None:
    """Historic, a replay, partitions that are replaced or added to, and what the logs say of all of it."""
    both = days(tmp_path / "spark", spark), days(tmp_path / "plain", plain_session())
    for real, stood_in in zip(*both, strict=True):
        assert seen(stood_in) == seen(real)
