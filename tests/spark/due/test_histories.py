"""Random histories of small real lakes: doing what is due and deciding what is asked makes them right."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.spark.due.gold import ages
from tests.spark.due.histories import SEEDS
from tests.spark.due.small import SmallProject, delete

from lakewright.due.facts import Verb
from lakewright.due.plan import Code
from lakewright.spec.grants import Grant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FRESH = (Verb.PLACE, Verb.TAKE, Verb.DROP, Verb.NEW)
"""The choices after which a table is what a fresh one would be."""


def events(
    project: SmallProject, chance: Random, model: dict[str, dict[int, int]]
) -> Iterator[Callable[[], None]]:
    """Yield what may happen to the lake; the model has what bronze holds."""

    def deliver(name: str) -> None:
        model[name] = {chance.randint(1, 4): chance.randint(1, 99) for _ in range(2)}
        project.put(name, model[name])

    yield lambda: deliver(f"{chance.randint(1, 5):02}")
    yield lambda: deliver(f"{len(model) + 1:02}")
    yield lambda: deliver(chance.choice(list(model) or ["01"]))
    yield lambda: _delete(project, chance.randint(1, 4))
    yield lambda: _lose_manifest(project)
    yield lambda: _restore(project, chance)
    yield lambda: shutil.rmtree(project.table, ignore_errors=True)
    yield lambda: _put_back_older(project)
    yield lambda: _disturb_gold(project, chance)
    yield lambda: _run_silver(project)
    yield lambda: _apply(project)


def _apply(project: SmallProject) -> None:
    project.apply()


def _run_silver(project: SmallProject) -> None:
    project.job("daily", targets=("people",))


def _delete(project: SmallProject, key: int) -> None:
    if (project.table / "_delta_log").exists():
        delete(project, key)


def _restore(project: SmallProject, chance: Random) -> None:
    log = project.table / "_delta_log"
    if log.exists():
        last = len(list(log.glob("*.json"))) - 1
        project.spark.sql(f"restore delta.`{project.table}` to version as of {chance.randint(0, last)}")


def _put_back_older(project: SmallProject) -> None:
    """Replace the table by the copy that was made before, if there is one, and copy it otherwise."""
    copy = project.folder / "older"
    if copy.exists():
        shutil.rmtree(project.table, ignore_errors=True)
        shutil.move(copy, project.table)
    elif project.table.exists():
        shutil.copytree(project.table, copy)


def _disturb_gold(project: SmallProject, chance: Random) -> None:
    """Remove, restore, change or define anew what is built from the table."""
    table = project.folder / "lake" / "gold" / "ages"
    how = chance.choice(["remove", "restore", "change", "define"])
    if how == "define":
        project.gold = ages(
            f"select age, count(*) as n, {chance.randint(1, 9)} as version from people group by age"
        )
        project.write()
    elif how == "remove":
        shutil.rmtree(table, ignore_errors=True)
    elif (table / "_delta_log").exists():
        version = "restore table delta.`{}` to version as of 0"
        change = "delete from delta.`{}` where n = 1"
        project.spark.sql((version if how == "restore" else change).format(table))


def _lose_manifest(project: SmallProject) -> None:
    for each in (project.folder / ".lakewright").glob("manifest.db*"):
        each.unlink()


def lived(
    tmp_path: Path, spark: SparkSession, seed: int
) -> tuple[SmallProject, Random, dict[str, dict[int, int]]]:
    """Return a lake to which six things have happened, and what bronze holds."""
    chance = Random(seed)
    project = SmallProject(tmp_path / "project", spark, gold=ages())
    model: dict[str, dict[int, int]] = {}
    for _ in range(6):
        chance.choice(list(events(project, chance, model)))()
    return project, chance, model


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_deciding_for_the_newest_content_in_its_place_gives_a_fresh_table(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    project, _, model = lived(tmp_path, spark, seed)
    for _ in range(15):
        applied = project.apply(*Grant)
        wanted = (Verb.PLACE, Verb.TAKE, Verb.DROP, Verb.NEW)
        chosen = [each for each in applied.left.choices if each.verb in wanted]
        if not chosen:
            break
        project.decide(chosen[0].decision.subject.text, chosen[0].verb.value)
    left = [step.reason.code for step in project.plan(*Grant).steps]
    assert left == ([] if model else [Code.INPUT_MISSING])
    expected: dict[int, int] = {}
    for name in sorted(model):
        expected |= model[name]
    assert project.rows() == expected
    counts = Counter(expected.values())
    assert (
        {row[0]: row[1] for row in project.built("ages")} == counts if project.table.exists() else not counts
    )


@pytest.mark.parametrize("seed", SEEDS[::2])
def test_whatever_happens_and_whatever_is_decided_it_ends(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    """Rules, "Shown by": deciding at random among choices, it ends within a bound, and the plan is empty."""
    project, chance, _ = lived(tmp_path, spark, seed)
    for _ in range(20):
        left = project.apply(*Grant).left
        offered = replace(left, steps=left.asked).choices
        if not offered:
            break
        choice = chance.choice(offered)
        project.decide(choice.decision.subject.text, choice.verb.value)
    assert project.apply(*Grant).taken == ()
    assert {step.reason.code for step in project.plan(*Grant).steps} <= {Code.INPUT_MISSING, Code.FILES_GONE}
