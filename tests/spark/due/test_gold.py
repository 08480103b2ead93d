"""What targets have built is made right by doing what is due, on small real lakes."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.due.gold import SILVER, ages, by_day, delta
from tests.spark.due.small import SmallProject

from lakewright.due.facts import Kind
from lakewright.due.plan import Action, Code, State
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakewright.due.plan import Plan


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> SmallProject:
    return SmallProject(tmp_path / "project", spark, gold=ages())


@pytest.fixture
def daily(tmp_path: Path, spark: SparkSession) -> SmallProject:
    return SmallProject(tmp_path / "project", spark, by_day=True, gold=by_day())


def due(plan: Plan) -> list[tuple[str, Code]]:
    """Return the instances of targets that are due, with why."""
    return [(each.subject.text, each.reason.code) for each in plan.ready if each.subject.kind is Kind.TARGET]


def test_gold_is_built_with_silver_and_again_once_silver_has_changed(project: SmallProject) -> None:
    project.put("01", {1: 10, 2: 10})
    plan = project.plan()
    assert [(each.subject.name, each.action) for each in plan.ready] == [
        ("people", Action.FORWARD),
        ("ages", Action.BUILD),
    ]
    project.done()
    assert project.built("ages") == [(10, 2)]
    project.put("02", {2: 20})
    assert due(project.plan()) == [("ages", Code.INPUT_DUE)]
    project.done()
    assert project.built("ages") == [(10, 1), (20, 1)]


def test_gold_of_another_job_is_stale_once_silver_has_changed(tmp_path: Path, spark: SparkSession) -> None:
    """Cases, "Where advice went wrong" 2: one plan, whatever the policy of the build."""
    gold = ages(buildPolicy="IF_CHANGED") | {"jobs": {"summary": {"targets": ["ages"]}}}
    project = SmallProject(tmp_path / "project", spark, by_day=True, gold=gold)
    project.put("01", {1: 10})
    project.job("daily", "day=01").check()
    project.job("summary").check()
    assert project.plan().steps == ()
    project.put("02", {2: 10})
    project.job("daily", "day=02").check()
    assert due(project.plan()) == [("ages", Code.INPUT_MOVED)]
    project.done()
    assert project.built("ages") == [(10, 2)]


def test_all_instances_are_stale_once_their_query_has_changed(daily: SmallProject) -> None:
    """Cases, "Where advice went wrong" 3: definition changed."""
    for day in ("01", "02"):
        daily.put(day, {int(day): int(day)})
        daily.job("daily", f"day={day}").check()
    daily.gold = by_day("select age * 10 as age, '${day}' as day from people where age < 100")
    daily.write()
    daily.put("03", {3: 3})
    daily.job("daily", "day=03").check()
    assert due(daily.plan()) == [("days/day=01", Code.REDEFINED), ("days/day=02", Code.REDEFINED)]
    daily.done()
    assert {(row[0] % 10, row[1]) for row in daily.built("days")} == {(0, "01"), (0, "02"), (0, "03")}


def test_nothing_is_named_that_is_not_stale(daily: SmallProject) -> None:
    """Cases, "Where advice went wrong" 8: a failed day, and the day before it is left alone."""
    daily.put("01", {1: 1})
    daily.job("daily", "day=01").check()
    daily.put("02", {2: "bad"})
    assert not daily.job("daily", "day=02").is_success
    assert {step.subject.text for step in daily.plan().steps} == {"people/02.csv", "days/day=02"}
    daily.put("02", {2: 2})
    daily.done()
    assert daily.plan().steps == ()


def test_a_build_that_has_begun_and_is_not_done_is_stale(
    daily: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cases, "Where advice went wrong" 9: a run is killed between the commits of silver and gold."""
    daily.put("01", {1: 1})
    daily.job("daily", "day=01").check()
    daily.put("02", {2: 2})
    _kill_before(monkeypatch, "days")
    assert not daily.job("daily", "day=02").is_success
    monkeypatch.undo()
    daily.job("daily", "day=02", targets=("people",))
    assert due(daily.plan()) == [("days/day=02", Code.CUT_OFF)]
    daily.done()
    assert {row[1] for row in daily.built("days")} == {"01", "02"}


def _kill_before(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    from lakewright.run.job import Recorder

    begin = Recorder.step_started

    def started(recorder: Recorder, instance: int, step: Any) -> None:
        if step.target == target and step.phase.value == "BUILD":
            raise KeyboardInterrupt
        begin(recorder, instance, step)

    monkeypatch.setattr(Recorder, "step_started", started)


@pytest.mark.parametrize("how", ["gone", "emptied", "restored"])
def test_gold_that_does_not_hold_its_build_is_built_again(project: SmallProject, how: str) -> None:
    project.put("01", {1: 10})
    project.done()
    project.put("02", {2: 20})
    project.done()
    table = project.folder / "lake" / "gold" / "ages"
    if how == "gone":
        shutil.rmtree(table)
    elif how == "emptied":
        project.spark.sql(f"delete from delta.`{table}`")
    else:
        project.spark.sql(f"restore table delta.`{table}` to version as of 0")
    assert due(project.plan()) == [("ages", Code.OUTPUT_GONE)]
    project.done()
    assert project.built("ages") == [(10, 1), (20, 1)]


def test_what_another_writer_did_to_gold_is_kept_until_somebody_decides(project: SmallProject) -> None:
    project.put("01", {1: 10, 2: 20})
    project.done()
    table = project.folder / "lake" / "gold" / "ages"
    project.spark.sql(f"delete from delta.`{table}` where age = 10")
    (finding,) = project.plan().findings
    assert (finding.reason.code, finding.subject.text, project.plan().steps) == (
        Code.FOREIGN_ROWS,
        "ages",
        (),
    )
    project.decide("ages", "drop")
    assert due(project.plan()) == [("ages", Code.OUTPUT_CHANGED)]
    project.done()
    assert (project.built("ages"), project.plan().findings) == ([(10, 1), (20, 1)], ())


def test_an_append_is_never_repeated_unasked(tmp_path: Path, spark: SparkSession) -> None:
    project = SmallProject(tmp_path / "project", spark, gold=ages(mode="APPEND"))
    project.put("01", {1: 10})
    project.done()
    project.put("02", {2: 20})
    project.job("daily", targets=("people",)).check()
    (step,) = project.plan().steps
    assert (step.reason.code, step.state) == (Code.APPENDED_BEFORE, State.NEEDS_DECISION)
    assert project.apply().taken == ()
    project.decide("ages", "again")
    project.done()
    assert project.built("ages") == [(10, 1), (10, 1), (20, 1)]
    assert project.plan().steps == ()


def test_what_a_person_has_removed_is_left_alone_until_somebody_wants_it(project: SmallProject) -> None:
    from lakewright.plan.phase import Phase

    project.put("01", {1: 10})
    project.done()
    project.job("daily", phase=Phase.TRUNCATE, targets=("ages",)).check()
    plan = project.plan()
    assert (plan.steps, [each.reason.code for each in plan.findings]) == ((), [Code.WITHDRAWN])
    project.decide("ages", "again")
    project.done()
    assert project.built("ages") == [(10, 1)]


def test_what_is_only_built_while_it_is_empty_is_left_as_it_is(tmp_path: Path, spark: SparkSession) -> None:
    project = SmallProject(tmp_path / "project", spark, gold=ages(buildPolicy="IF_EMPTY"))
    project.put("01", {1: 10})
    project.done()
    project.put("02", {2: 20})
    project.job("daily", targets=("people",)).check()
    plan = project.plan()
    assert (plan.steps, [each.reason.code for each in plan.findings]) == ((), [Code.KEPT_AS_FILLED])
    assert project.built("ages") == [(10, 1)]


def test_a_chain_of_targets_is_built_in_its_order(tmp_path: Path, spark: SparkSession) -> None:
    gold = ages()
    gold["mappings"] |= {
        "read_ages": {"kind": "relation", "relation": delta("ages")},
        "top": {"kind": "sql", "sql": "select max(n) as n from read_ages"},
    }
    gold["targets"] = {
        "top": {"kind": "relation", "mapping": "top", "relation": delta("top")},
        **gold["targets"],
    }
    gold["jobs"] = {"tops": {"targets": ["top"]}}
    project = SmallProject(tmp_path / "project", spark, gold=gold)
    project.put("01", {1: 10, 2: 10})
    assert [each.subject.text for each in project.plan().ready] == ["people", "ages", "top"]
    project.done()
    assert project.built("top") == [(2,)]
    project.put("02", {3: 10})
    project.job("daily").check()
    assert due(project.plan()) == [("top", Code.INPUT_MOVED)]
    project.done()
    assert project.built("top") == [(3,)]


def lose_manifest(project: SmallProject) -> None:
    for each in (project.folder / ".lakewright").glob("manifest.db*"):
        each.unlink()


@pytest.mark.parametrize("mode", ["OVERWRITE", "APPEND"])
def test_the_log_tells_what_was_built_if_the_manifest_is_lost(
    tmp_path: Path, spark: SparkSession, mode: str
) -> None:
    """Rules, "Gold: builds": a build is in the commit, and in the manifest."""
    daily = SmallProject(tmp_path / "project", spark, by_day=True, gold=by_day(mode=mode))
    daily.put("01", {1: 1})
    daily.put("02", {2: 2})
    daily.done()
    rows = daily.built("days")
    lose_manifest(daily)
    actions = [(each.action, each.subject.text) for each in daily.plan().ready]
    assert actions == [
        (Action.RECORD, "people"),
        (Action.RECORD, "days/day=01"),
        (Action.RECORD, "days/day=02"),
    ]
    daily.done()
    assert (daily.built("days"), daily.plan().findings) == (rows, ())
    daily.put("02", {2: 22})
    daily.decide("people/02.csv", "take")
    daily.apply()
    codes = [step.reason.code for step in daily.plan().steps]
    assert codes == ([] if mode == "OVERWRITE" else [Code.APPENDED_BEFORE])


def test_what_was_built_before_the_manifest_was_lost_may_be_unknown(daily: SmallProject) -> None:
    """A file, or a merge, has no log that tells it."""
    place = "${project.basedir}/lake/gold/days.csv"
    local = {"kind": "local", "mapping": "of_day", "filename": place}
    daily.gold["targets"] = {"days": local}
    daily.write()
    daily.put("01", {1: 1})
    daily.done()
    lose_manifest(daily)
    daily.done()
    (finding,) = daily.plan().findings
    assert (finding.reason.code, finding.subject.name) == (Code.UNRECORDED, "days")


def test_gold_of_a_lake_that_was_moved_is_built_again(project: SmallProject) -> None:
    project.put("01", {1: 10})
    project.done()
    project.gold["targets"]["ages"]["relation"]["location"] = "${project.basedir}/lake/gold/elsewhere"
    project.write()
    assert due(project.plan()) == [("ages", Code.NO_BUILD)]
    project.done()
    assert project.built("elsewhere") == [(10, 1)]


def test_a_target_that_was_renamed_keeps_its_builds(project: SmallProject) -> None:
    project.put("01", {1: 10})
    project.done()
    project.gold["targets"] = {"by_age": project.gold["targets"]["ages"]}
    project.write()
    assert project.plan().steps == ()
    project.put("02", {2: 20})
    project.job("daily", targets=("people",)).check()
    assert due(project.plan()) == [("by_age", Code.INPUT_MOVED)]
    project.done()
    assert project.plan().steps == ()


def test_a_failed_run_s_work_is_found_by_the_next_one(daily: SmallProject) -> None:
    """Rules, "Runs": a scheduler's repeat goes on from what is there."""
    daily.put("01", {1: 1})
    daily.gold["mappings"]["of_day"]["sql"] = "select nothing as age, '${day}' as day from people"
    daily.write()
    assert not daily.job("daily", "day=01").is_success
    daily.gold = by_day()
    daily.write()
    daily.job("daily", "day=01").check()
    assert daily.plan().steps == ()
    assert [row[1] for row in daily.built("days")] == ["01"]


def test_slices_of_other_days_concern_no_day(daily: SmallProject) -> None:
    for day in ("01", "02", "03"):
        daily.put(day, {int(day): int(day)})
        daily.job("daily", f"day={day}").check()
    daily.put("02", {2: 22})
    daily.decide("people/02.csv", "take")
    daily.done()
    assert daily.plan().steps == ()


def test_targets_that_share_a_table_are_each_built_into_their_own_part(
    tmp_path: Path, spark: SparkSession
) -> None:
    shared = delta("shared", partitions=[{"name": "part", "type": "string"}])
    young, old = (
        {"kind": "sql", "sql": f"select age, '{part}' as part from people where age {where}"}
        for part, where in (("young", "< 50"), ("old", ">= 50"))
    )
    gold: dict[str, dict[str, Any]] = {
        "mappings": {"people": SILVER, "young": young, "old": old},
        "relations": {"shared": shared},
        "targets": {
            name: {"kind": "relation", "mapping": name, "relation": "shared", "partition": {"part": name}}
            for name in ("young", "old")
        },
    }
    project = SmallProject(tmp_path / "project", spark, gold=gold)
    project.put("01", {1: 10, 2: 90})
    project.done()
    assert project.built("shared") == [(10, "young"), (90, "old")]
    gold["mappings"]["old"] = {**old, "sql": old["sql"].replace("select age", "select age + 1 as age")}
    project.write()
    assert due(project.plan()) == [("old", Code.REDEFINED)]
    project.done()
    assert project.built("shared") == [(10, "young"), (91, "old")]
    shutil.rmtree(project.folder / "lake" / "gold" / "shared")
    assert sorted(due(project.plan())) == [("old", Code.OUTPUT_GONE), ("young", Code.OUTPUT_GONE)]
    project.done()
    assert project.built("shared") == [(10, "young"), (91, "old")]


def test_two_who_apply_at_once_build_what_is_due_once(project: SmallProject) -> None:
    project.put("01", {1: 10})
    project.done()
    project.put("02", {2: 20})
    project.job("daily", targets=("people",)).check()
    with ThreadPoolExecutor(2) as pool:
        both = [each.result() for each in [pool.submit(project.apply) for _ in range(2)]]
    assert any(each.failed == () for each in both)
    project.apply()
    assert (project.plan().steps, project.built("ages")) == ((), [(10, 1), (20, 1)])


def test_a_run_asks_for_single_builds_where_there_are_many(
    daily: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakewright.usecases.due.last_builds.FEW", 1)
    for day in ("01", "02", "03"):
        daily.put(day, {int(day): int(day)})
        daily.job("daily", f"day={day}").check()
    assert daily.job("daily", "day=01").status is Status.SKIPPED
    shutil.rmtree(daily.folder / "lake" / "gold" / "days")
    daily.job("daily", "day=02").check()
    assert [row[1] for row in daily.built("days")] == ["02", "02", "02"]
    assert due(daily.plan()) == [("days/day=01", Code.OUTPUT_GONE), ("days/day=03", Code.OUTPUT_GONE)]


VERIFY = {
    "kind": "verify",
    "assertions": {"few": {"kind": "expression", "mapping": "read", "expected": "n < 2"}},
}


def test_a_check_is_done_again_once_its_input_has_changed_and_a_failed_one_may_be_waived(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Rules, "Runs": VERIFY runs where its inputs changed since its last good check."""
    gold = ages()
    gold["mappings"]["read"] = {"kind": "relation", "relation": delta("ages")}
    gold["targets"]["few"] = VERIFY
    project = SmallProject(tmp_path / "project", spark, gold=gold)
    project.put("01", {1: 10})
    project.done()
    assert due(project.plan()) == [], "nobody has asked for the check"
    project.job("daily", phase=Phase.VERIFY).check()
    assert project.plan().steps == ()
    project.put("02", {2: 10})
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
    project.put("03", {2: 20})
    project.done()
    assert project.plan().steps == ()


def test_a_check_that_a_run_did_not_reach_is_done_by_apply(
    daily: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    daily.put("01", {1: 1})
    _kill_before(monkeypatch, "days")
    assert not daily.job("daily", "day=01", phase=Phase.VERIFY).is_success
    monkeypatch.undo()
    taken = [(each.step.action, each.step.subject.text) for each in daily.apply().taken]
    assert taken[-2:] == [(Action.BUILD, "days/day=01"), (Action.CHECK, "days/day=01")]
    assert daily.plan().steps == ()
