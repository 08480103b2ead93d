"""Small real lakes: doing what is due and deciding what is asked makes them right, and so does the stand-in.

Most tests of `apply` run on a stand-in for Spark (`tests/plain`). Here the same things happen to a lake with
Spark and to one with the stand-in, and after each of them both have the same plan and the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from tests.silver import rows_of
from tests.small_gold import by_day, delta
from tests.small_histories import Life, lose_manifest, seen
from tests.small_project import SmallProject
from tests.spark.due.histories import SEEDS

from lakewright.due.plan import Action
from lakewright.lake.commit import read_commits
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def both(spark: SparkSession, plain: SparkSession) -> Mapping[str, SparkSession]:
    return {"spark": spark, "plain": plain}


def alike(
    tmp_path: Path, both: Mapping[str, SparkSession], seed: int, *ways: Callable[[Life], Iterator[None]]
) -> None:
    """Let the same happen to two lakes, with Spark and with the stand-in; compare them after each thing."""
    lives = [Life.begun(tmp_path / name / "project", session, seed) for name, session in both.items()]
    for way in ways:
        for _ in zip(*map(way, lives), strict=True):
            real, stood_in = (seen(life.project) for life in lives)
            assert stood_in == real


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_deciding_for_the_newest_content_in_its_place_gives_a_fresh_table(
    tmp_path: Path, both: Mapping[str, SparkSession], seed: int
) -> None:
    alike(tmp_path, both, seed, Life.grow, Life.become_fresh)


@pytest.mark.parametrize("seed", SEEDS[1::3])
def test_whatever_happens_and_whatever_is_decided_it_ends(
    tmp_path: Path, both: Mapping[str, SparkSession], seed: int
) -> None:
    """Rules, "Shown by": deciding at random among choices, it ends within a bound, and the plan is empty."""
    alike(tmp_path, both, seed, Life.grow, Life.end)


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


def test_slices_and_builds_of_days_are_those_of_spark(
    tmp_path: Path, both: Mapping[str, SparkSession]
) -> None:
    """Historic, a replay, partitions that are replaced or added to, and what the logs say of all of it."""
    lakes = (days(tmp_path / name, session) for name, session in both.items())
    for real, stood_in in zip(*lakes, strict=True):
        assert seen(stood_in) == seen(real)


def written(project: SmallProject) -> tuple[Any, ...]:
    """Return a table as it was written, with its commits, but for what differs from run to run."""
    table = DeltaTable(project.table)
    columns = {each.name: str(each.type) for each in table.schema().fields}
    kept = [name for name, kind in columns.items() if "timestamp" not in kind]
    rows = sorted(tuple(row[name] for name in kept) for row in rows_of(project.table))
    commits = read_commits(project.app().lake, Address(location=str(project.table)))
    contents = [_lasting(dict(each.content)) for each in commits]
    return columns, rows, dict(table.metadata().configuration), table.protocol().reader_features, contents


def _lasting(content: dict[str, Any]) -> dict[str, Any]:
    for name in ("run", "record", "processingTime", "fingerprint"):
        assert content.pop(name)
    content["item"] = content["item"].rpartition("/")[2]
    content["metrics"] = {**content["metrics"], "seconds": None}
    return content


@pytest.mark.parametrize("strategy", ["full", "merge", "historic"])
def test_tables_and_commits_are_those_of_spark(
    tmp_path: Path, both: Mapping[str, SparkSession], strategy: str
) -> None:
    found = []
    for name, session in both.items():
        project = SmallProject(tmp_path / name, session, strategy=strategy)
        project.put("01", {1: 10, 2: 20})
        project.put("02", {2: 21, 3: 30})
        project.done()
        found.append(written(project))
    assert found[0] == found[1]
