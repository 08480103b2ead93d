"""What targets have built is made right by doing what is due, on small real lakes."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from tests.small_gold import SILVER, ages, by_day, delta
from tests.small_histories import lose_manifest
from tests.small_project import SmallProject
from tests.spark.kept import put_back

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


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("built")


@pytest.fixture
def built(places: Path, spark: SparkSession) -> SmallProject:
    """A project whose gold has been built of one slice, and again of two."""

    def build() -> None:
        project = SmallProject(places / "built", spark, gold=ages())
        project.put("01", {1: 10})
        assert [(each.subject.name, each.action) for each in project.plan().ready] == [
            ("people", Action.FORWARD),
            ("ages", Action.BUILD),
        ]
        project.done()
        project.put("02", {2: 20})
        assert due(project.plan()) == [("ages", Code.INPUT_DUE)]
        project.done()

    put_back(places / "built", build, spark)
    return SmallProject(places / "built", spark, gold=ages())


@pytest.fixture
def two_days(places: Path, spark: SparkSession) -> SmallProject:
    """A project whose slices of two days are processed, each by the run of its day, with gold of both."""

    def build() -> None:
        project = SmallProject(places / "two_days", spark, by_day=True, gold=by_day())
        project.put("01", {1: 1})
        project.put("02", {2: 2})
        project.done()

    put_back(places / "two_days", build, spark)
    return SmallProject(places / "two_days", spark, by_day=True, gold=by_day())


def due(plan: Plan) -> list[tuple[str, Code]]:
    """Return the instances of targets that are due, with why."""
    return [(each.subject.text, each.reason.code) for each in plan.ready if each.subject.kind is Kind.TARGET]


def test_gold_is_built_with_silver_and_again_once_silver_has_changed(built: SmallProject) -> None:
    first = DeltaTable(built.folder / "lake" / "gold" / "ages", version=0).to_pyarrow_table().to_pylist()
    assert first == [{"age": 10, "n": 1}]
    assert built.built("ages") == [(10, 1), (20, 1)]


def test_a_slice_belongs_to_the_run_of_its_day(two_days: SmallProject) -> None:
    """Cases, "Where advice went wrong" 7: a step has its instance."""
    runs = list(two_days.app().journal.runs(job="daily"))
    assert sorted(run.arguments for run in runs) == [("day=01",), ("day=02",)]
    assert (two_days.rows(), {row[1] for row in two_days.built("days")}) == ({1: 1, 2: 2}, {"01", "02"})


def test_a_new_slice_that_a_replay_takes_has_the_gold_of_its_day(two_days: SmallProject) -> None:
    two_days.put("01", {1: 11})
    two_days.put("03", {3: 3})
    two_days.decide("people/01.csv", "take")
    (step,) = (each for each in two_days.plan().ready if each.subject.name == "people")
    assert (step.action, [each.name for each in step.slices]) == (
        Action.REPLAY,
        ["01.csv", "02.csv", "03.csv"],
    )
    two_days.done()
    assert {row[1] for row in two_days.built("days")} == {"01", "02", "03"}
    assert two_days.plan().steps == ()


def test_all_instances_are_stale_once_their_query_has_changed(two_days: SmallProject) -> None:
    """Cases, "Where advice went wrong" 3: definition changed."""
    two_days.gold = by_day("select age * 10 as age, '${day}' as day from people where age < 100")
    two_days.write()
    assert due(two_days.plan()) == [("days/day=01", Code.REDEFINED), ("days/day=02", Code.REDEFINED)]
    two_days.job("daily", "day=02", force=True).check()
    assert due(two_days.plan()) == [("days/day=01", Code.REDEFINED)]
    two_days.done()
    assert two_days.built("days") == [(age, day) for age in (10, 20) for day in ("01", "02")]


def test_after_a_failed_run_and_a_killed_one_nothing_is_named_that_is_not_stale(
    two_days: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cases, "Where advice went wrong" 8 and 9: the days before are left alone."""
    two_days.put("03", {3: "bad"})
    assert not two_days.job("daily", "day=03").is_success
    assert {step.subject.text for step in two_days.plan().steps} == {"people/03.csv", "days/day=03"}
    two_days.put("03", {3: 3})
    _kill_before(monkeypatch, "days")
    assert not two_days.job("daily", "day=03").is_success
    monkeypatch.undo()
    two_days.job("daily", "day=03", targets=("people",))
    assert due(two_days.plan()) == [("days/day=03", Code.CUT_OFF)]
    two_days.done()
    assert {row[1] for row in two_days.built("days")} == {"01", "02", "03"}
    assert two_days.plan().steps == ()


def _kill_before(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    from lakewright.run.job import Recorder

    begin = Recorder.step_started

    def started(recorder: Recorder, instance: int, step: Any) -> None:
        if step.target == target and step.phase.value == "BUILD":
            raise KeyboardInterrupt
        begin(recorder, instance, step)

    monkeypatch.setattr(Recorder, "step_started", started)


@pytest.mark.parametrize("how", ["gone", "emptied", "restored"])
def test_gold_that_does_not_hold_its_build_is_built_again(built: SmallProject, how: str) -> None:
    table = built.folder / "lake" / "gold" / "ages"
    if how == "gone":
        shutil.rmtree(table)
    elif how == "emptied":
        DeltaTable(table).delete()
    else:
        DeltaTable(table).restore(0)
    assert due(built.plan()) == [("ages", Code.OUTPUT_GONE)]
    built.done()
    assert built.built("ages") == [(10, 1), (20, 1)]


def test_what_another_writer_did_to_gold_is_kept_until_somebody_decides(built: SmallProject) -> None:
    DeltaTable(built.folder / "lake" / "gold" / "ages").delete("age = 10")
    (finding,) = built.plan().findings
    assert (finding.reason.code, finding.subject.text, built.plan().steps) == (Code.FOREIGN_ROWS, "ages", ())
    built.decide("ages", "drop")
    assert due(built.plan()) == [("ages", Code.OUTPUT_CHANGED)]
    built.done()
    assert (built.built("ages"), built.plan().findings) == ([(10, 1), (20, 1)], ())


def test_an_append_is_never_repeated_unasked_and_what_is_built_while_it_is_empty_is_left_as_it_is(
    tmp_path: Path, spark: SparkSession
) -> None:
    gold = ages(mode="APPEND")
    filled = {**gold["targets"]["ages"], "relation": delta("filled"), "buildPolicy": "IF_EMPTY"}
    gold["targets"]["filled"] = {**filled, "mode": "OVERWRITE"}
    project = SmallProject(tmp_path / "project", spark, gold=gold)
    project.put("01", {1: 10})
    project.done()
    project.put("02", {2: 20})
    project.job("daily", targets=("people",)).check()
    plan = project.plan()
    (step,) = plan.steps
    assert (step.subject.text, step.reason.code, step.state) == (
        *("ages", Code.APPENDED_BEFORE),
        State.NEEDS_DECISION,
    )
    assert [(each.subject.text, each.reason.code) for each in plan.findings] == [
        ("filled", Code.KEPT_AS_FILLED)
    ]
    assert project.apply().taken == ()
    project.decide("ages", "again")
    project.done()
    assert project.built("ages") == [(10, 1), (10, 1), (20, 1)]
    assert project.built("filled") == [(10, 1)]
    assert project.plan().steps == ()


def test_what_a_person_has_removed_is_left_alone_until_somebody_wants_it(built: SmallProject) -> None:
    built.job("daily", phase=Phase.TRUNCATE, targets=("ages",)).check()
    plan = built.plan()
    assert (plan.steps, [each.reason.code for each in plan.findings]) == ((), [Code.WITHDRAWN])
    built.decide("ages", "again")
    built.done()
    assert built.built("ages") == [(10, 1), (20, 1)]


def test_a_chain_of_targets_is_built_in_its_order_and_those_of_other_jobs_are_stale_once_an_input_has_changed(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Cases, "Where advice went wrong" 2: one plan, whatever the policy of the build."""
    gold = ages(buildPolicy="IF_CHANGED")
    gold["mappings"] |= {
        "read_ages": {"kind": "relation", "relation": delta("ages")},
        "top": {"kind": "sql", "sql": "select max(n) as n from read_ages"},
    }
    gold["targets"] = {
        "top": {"kind": "relation", "mapping": "top", "relation": delta("top")},
        **gold["targets"],
    }
    gold["jobs"] = {"summary": {"targets": ["ages"]}, "tops": {"targets": ["top"]}}
    project = SmallProject(tmp_path / "project", spark, gold=gold)
    project.put("01", {1: 10, 2: 10})
    assert [each.subject.text for each in project.plan().ready] == ["people", "ages", "top"]
    project.done()
    assert project.built("top") == [(2,)]
    project.put("02", {3: 10})
    project.job("daily").check()
    assert due(project.plan()) == [("ages", Code.INPUT_MOVED), ("top", Code.INPUT_DUE)]
    project.job("summary").check()
    assert due(project.plan()) == [("top", Code.INPUT_MOVED)]
    project.done()
    assert (project.built("ages"), project.built("top")) == ([(10, 3)], [(3,)])


def test_the_log_tells_what_was_built_if_the_manifest_is_lost(two_days: SmallProject) -> None:
    """Rules, "Gold: builds": a build is in the commit, and in the manifest."""
    days = two_days.gold["targets"]["days"]
    relation = {**days["relation"], "location": delta("added")["location"]}
    two_days.gold["targets"]["added"] = {**days, "relation": relation, "mode": "APPEND"}
    two_days.write()
    two_days.job("daily", "day=01,02", targets=("added",)).check()
    rows = two_days.built("days"), two_days.built("added")
    lose_manifest(two_days)
    actions = sorted((each.subject.text, each.action) for each in two_days.plan().ready)
    builds = [f"{name}/day={day}" for name in ("added", "days") for day in ("01", "02")]
    assert actions == [(name, Action.RECORD) for name in (*builds, "people")]
    two_days.done()
    assert (two_days.built("days"), two_days.built("added")) == rows
    assert two_days.plan().findings == ()
    two_days.put("02", {2: 22})
    two_days.decide("people/02.csv", "take")
    two_days.apply()
    left = [(step.subject.text, step.reason.code) for step in two_days.plan().steps]
    assert left == [("added/day=02", Code.APPENDED_BEFORE)]


def test_an_older_copy_of_the_manifest_learns_from_logs_what_was_built_since(
    two_days: SmallProject,
) -> None:
    manifest, older = two_days.folder / ".lakewright", two_days.folder / "older"
    shutil.copytree(manifest, older)
    two_days.put("01", {1: 11})
    two_days.put("03", {3: 3})
    two_days.decide("people/01.csv", "take")
    two_days.done()
    rows = two_days.built("days")
    shutil.rmtree(manifest)
    shutil.move(older, manifest)
    ready = {each.subject.text: each.action for each in two_days.plan().ready}
    assert {"people", "days/day=01", "days/day=03"} <= ready.keys()
    assert set(ready.values()) == {Action.RECORD}
    two_days.done()
    assert (two_days.built("days"), two_days.plan().steps) == (rows, ())


def test_gold_of_a_lake_that_was_moved_is_built_again(built: SmallProject) -> None:
    built.gold["targets"]["ages"]["relation"]["location"] = "${project.basedir}/lake/gold/elsewhere"
    built.write()
    assert due(built.plan()) == [("ages", Code.NO_BUILD)]
    built.done()
    assert built.built("elsewhere") == [(10, 1), (20, 1)]


def test_a_target_that_was_renamed_keeps_its_builds(built: SmallProject) -> None:
    built.gold["targets"] = {"by_age": built.gold["targets"]["ages"]}
    built.write()
    assert built.plan().steps == ()
    built.put("03", {3: 20})
    built.job("daily", targets=("people",)).check()
    assert due(built.plan()) == [("by_age", Code.INPUT_MOVED)]
    built.done()
    assert built.plan().steps == ()


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


def test_slices_of_other_days_concern_no_day(two_days: SmallProject) -> None:
    two_days.put("02", {2: 22})
    two_days.decide("people/02.csv", "take")
    taken = [(each.step.action, each.step.subject.text) for each in two_days.done().taken]
    assert taken == [(Action.REPLAY, "people"), (Action.BUILD, "days/day=02")]
    assert two_days.plan().steps == ()


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


def test_two_who_apply_at_once_build_what_is_due_once(built: SmallProject) -> None:
    built.put("03", {3: 20})
    built.job("daily", targets=("people",)).check()
    with ThreadPoolExecutor(2) as pool:
        both = [each.result() for each in [pool.submit(built.apply) for _ in range(2)]]
    assert any(each.failed == () for each in both)
    built.apply()
    assert (built.plan().steps, built.built("ages")) == ((), [(10, 1), (20, 2)])


def test_a_run_asks_for_single_builds_where_there_are_many(
    two_days: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakewright.usecases.due.last_builds.FEW", 1)
    assert two_days.job("daily", "day=01").status is Status.SKIPPED
    shutil.rmtree(two_days.folder / "lake" / "gold" / "days")
    two_days.job("daily", "day=02").check()
    assert [row[1] for row in two_days.built("days")] == ["02", "02"]
    assert due(two_days.plan()) == [("days/day=01", Code.OUTPUT_GONE)]


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
