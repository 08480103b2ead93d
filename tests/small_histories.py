"""Random histories of a small project: what may happen to its lake, and what brings that in order again."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tests.small_gold import ages
from tests.small_project import SmallProject, delete

from lakewright.due.facts import Verb
from lakewright.due.plan import Code, Plan
from lakewright.spec.grants import Grant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FRESH = (Verb.PLACE, Verb.TAKE, Verb.DROP, Verb.NEW)
"""The choices after which a table is what a fresh one would be."""

EVENTS = 6
"""How many things happen to a lake before it is brought in order."""


@dataclass
class Life:
    """A project to which things happen.

    Attributes:
        chance: Says what happens.
        model: What bronze holds.
    """

    project: SmallProject
    chance: Random
    model: dict[str, dict[int, int]] = field(default_factory=dict)

    @classmethod
    def begun(cls, folder: Path, spark: SparkSession, seed: int) -> Life:
        return cls(SmallProject(folder, spark, gold=ages()), Random(seed))

    def grow(self) -> Iterator[None]:
        """Let one thing after the other happen."""
        for _ in range(EVENTS):
            self.chance.choice(list(self._events()))()
            yield

    def become_fresh(self) -> Iterator[None]:
        """Do what is due and decide for the newest content in its place; check that the table is fresh."""
        project = self.project
        for _ in range(15):
            chosen = [each for each in project.apply(*Grant).left.choices if each.verb in FRESH]
            if not chosen:
                break
            project.decide(chosen[0].decision.subject.text, chosen[0].verb.value)
            yield
        left = [step.reason.code for step in project.plan(*Grant).steps]
        assert left == ([] if self.model else [Code.INPUT_MISSING])
        expected: dict[int, int] = {}
        for name in sorted(self.model):
            expected |= self.model[name]
        assert project.rows() == expected
        counts = Counter(expected.values())
        built = {row[0]: row[1] for row in project.built("ages")}
        assert built == counts if project.table.exists() else not counts
        yield

    def end(self) -> Iterator[None]:
        """Do what is due and decide at random; check that it ends within a bound, with an empty plan."""
        project = self.project
        for _ in range(20):
            left = project.apply(*Grant).left
            offered = replace(left, steps=left.asked).choices
            if not offered:
                break
            choice = self.chance.choice(offered)
            project.decide(choice.decision.subject.text, choice.verb.value)
            yield
        assert project.apply(*Grant).taken == ()
        left_over = {step.reason.code for step in project.plan(*Grant).steps}
        assert left_over <= {Code.INPUT_MISSING, Code.FILES_GONE}
        yield

    def _events(self) -> Iterator[Callable[[], object]]:
        project, chance = self.project, self.chance
        yield lambda: self._deliver(f"{chance.randint(1, 5):02}")
        yield lambda: self._deliver(f"{len(self.model) + 1:02}")
        yield lambda: self._deliver(chance.choice(list(self.model) or ["01"]))
        yield lambda: self._delete(chance.randint(1, 4))
        yield lambda: lose_manifest(project)
        yield self._restore
        yield lambda: shutil.rmtree(project.table, ignore_errors=True)
        yield self._put_back_older
        yield self._disturb_gold
        yield lambda: project.job("daily", targets=("people",))
        yield project.apply

    def _deliver(self, name: str) -> None:
        chance = self.chance
        self.model[name] = {chance.randint(1, 4): chance.randint(1, 99) for _ in range(2)}
        self.project.put(name, self.model[name])

    def _delete(self, key: int) -> None:
        if (self.project.table / "_delta_log").exists():
            delete(self.project, key)

    def _restore(self) -> None:
        table = self.project.table
        log = table / "_delta_log"
        if log.exists():
            version = self.chance.randint(0, len(list(log.glob("*.json"))) - 1)
            self.project.spark.sql(f"restore delta.`{table}` to version as of {version}")

    def _put_back_older(self) -> None:
        """Replace the table by the copy that was made before, if there is one, and copy it otherwise."""
        copy, table = self.project.folder / "older", self.project.table
        if copy.exists():
            shutil.rmtree(table, ignore_errors=True)
            shutil.move(copy, table)
        elif table.exists():
            shutil.copytree(table, copy)

    def _disturb_gold(self) -> None:
        """Remove, restore, change or define anew what is built from the table."""
        project, chance = self.project, self.chance
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


def lose_manifest(project: SmallProject) -> None:
    for each in (project.folder / ".lakewright").glob("manifest.db*"):
        each.unlink()


def seen(project: SmallProject) -> tuple[Any, ...]:
    """Return what a plan says, and the rows of the tables."""
    plan = project.plan()
    return (*said(plan), project.rows(), project.built("ages"))


def said(plan: Plan) -> tuple[Any, ...]:
    """Return the steps of a plan and its findings as values."""
    steps = [
        (each.id, each.action, each.reason.code, each.state, [own.name for own in each.slices], each.base)
        for each in plan.steps
    ]
    choices = [(each.decision.subject.text, each.verb) for each in plan.choices]
    return steps, choices, [(each.subject.text, each.reason.code) for each in plan.findings]
