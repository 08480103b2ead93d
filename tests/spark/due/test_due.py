"""What only Spark does of that which is due: a file of rows, a check of rows, and Python's own session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.small_gold import ages, by_day, delta
from tests.small_histories import lose_manifest
from tests.small_project import SmallProject

from lakewright import Project
from lakewright.due.plan import Action, Code, State
from lakewright.errors import UsageError
from lakewright.plan.phase import Phase

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_python_plans_applies_and_decides(tmp_path: Path, spark: SparkSession) -> None:
    project = SmallProject(tmp_path / "project", spark)
    project.put("01", {1: 10, 2: 20})
    project.put("03", {1: 30})
    with Project.load(project.folder, spark=spark) as loaded:
        assert [step.action for step in loaded.due("people").steps] == [Action.FORWARD]
        assert [each.fault for each in loaded.apply().taken] == [None]
        project.put("02", {1: 20})
        assert loaded.apply().needs_person
        loaded.decide("people/02.csv", "skip", reason="a test")
        assert loaded.apply(allow=["replay"]).left.steps == ()
        with pytest.raises(UsageError):
            loaded.due(allow="everything")
    assert project.rows() == {1: 30, 2: 20}


@pytest.mark.nightly  # unit/due/test_gold.py loses manifests too
def test_what_was_built_before_the_manifest_was_lost_may_be_unknown(
    tmp_path: Path, spark: SparkSession
) -> None:
    """A file, or a merge, has no log that tells it."""
    place = "${project.basedir}/lake/gold/days.csv"
    gold = {**by_day(), "targets": {"days": {"kind": "local", "mapping": "of_day", "filename": place}}}
    project = SmallProject(tmp_path / "project", spark, by_day=True, gold=gold)
    project.put("01", {1: 1})
    project.done()
    lose_manifest(project)
    project.done()
    (finding,) = project.plan().findings
    assert (finding.reason.code, finding.subject.name) == (Code.UNRECORDED, "days")


FEW = {
    "kind": "verify",
    "assertions": {"few": {"kind": "expression", "mapping": "read", "expected": "n < 2"}},
}


def test_a_check_is_done_again_once_its_input_has_changed_and_a_failed_one_may_be_waived(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Rules, "Runs": VERIFY runs where its inputs changed since its last good check."""
    gold = ages()
    gold["mappings"]["read"] = {"kind": "relation", "relation": delta("ages")}
    gold["targets"]["few"] = FEW
    project = SmallProject(tmp_path / "project", spark, gold=gold)
    project.put("01", {1: 10, 2: 20})
    project.done()
    assert project.plan().steps == (), "nobody has asked for the check"
    project.job("daily", phase=Phase.VERIFY).check()
    assert project.plan().steps == ()
    project.put("02", {3: 10})
    project.apply()
    (step,) = project.plan().steps
    assert (step.subject.text, step.reason.code, step.state) == (
        "few",
        Code.CHECK_FAILED,
        State.NEEDS_DECISION,
    )
    assert [each.verb.value for each in step.choices] == ["waive"]
    project.decide("few", "waive")
    assert project.plan().steps == ()
    project.put("03", {3: 30})
    project.done()
    assert project.plan().steps == ()
