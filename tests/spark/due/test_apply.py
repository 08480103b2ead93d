"""Small real lakes to which things happen: doing what is due and deciding what is asked makes them right."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.due.small import SmallProject, delete, told

from lakewright import Project
from lakewright.app import App
from lakewright.due.facts import Grant
from lakewright.due.plan import Action, Code, State
from lakewright.errors import UsageError
from lakewright.manifest.journal import CALM
from lakewright.manifest.record import Record
from lakewright.slices.discover import item_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> SmallProject:
    return SmallProject(tmp_path / "project", spark)


def test_new_slices_are_taken_and_nothing_is_due_then(project: SmallProject) -> None:
    project.put("01", {1: 10, 2: 20})
    project.put("02", {2: 21})
    (step,) = project.plan().steps
    assert (step.action, [each.name for each in step.slices]) == (Action.FORWARD, ["01.csv", "02.csv"])
    assert len(project.done().taken) == 1
    assert project.rows() == {1: 10, 2: 21}


def test_a_late_slice_is_asked_about_and_put_in_its_place(project: SmallProject) -> None:
    """Cases, "Where advice went wrong" 4: the decision says where it goes."""
    project.put("01", {1: 10})
    project.put("03", {1: 30})
    project.done()
    project.put("02", {1: 20, 2: 20})
    assert told(project.plan()) == [(Code.LATE_SLICE, State.NEEDS_DECISION)]
    assert project.apply().taken == ()
    project.decide("people/02.csv", "place")
    project.done()
    assert project.rows() == {1: 30, 2: 20}


def test_a_late_slice_can_be_applied_after_the_others_or_left_out(project: SmallProject) -> None:
    project.put("03", {1: 30})
    project.done()
    project.put("01", {1: 10})
    project.put("02", {1: 20})
    project.decide("people/01.csv", "skip")
    project.decide("people/02.csv", "end")
    project.done()
    assert project.rows() == {1: 20}
    assert project.plan().steps == ()


def test_a_late_and_a_corrected_slice_are_taken_together_by_one_replay(project: SmallProject) -> None:
    """Cases, "Where advice went wrong" 5: one replay with both."""
    project.put("01", {1: 10})
    project.put("03", {1: 30})
    project.done()
    project.put("02", {2: 20})
    project.put("03", {1: 31, 2: 21, 3: 3})
    project.put("04", {4: 4})
    assert {code for code, _ in told(project.plan())} >= {Code.LATE_SLICE, Code.CHANGED_SLICE}
    project.decide("people/02.csv", "place")
    project.decide("people/03.csv", "take")
    (step,) = project.plan().ready
    assert [each.name for each in step.slices] == ["02.csv", "03.csv", "04.csv"]
    project.done()
    assert project.rows() == {1: 31, 2: 21, 3: 3, 4: 4}


def test_a_slice_that_changed_while_it_waited_is_taken_as_it_is(project: SmallProject) -> None:
    """Cases, "Where advice went wrong" 6: a plan names no step that is sure to be refused."""
    project.put("01", {1: "bad"})
    project.put("02", {2: 2})
    assert [each.fault is None for each in project.apply().taken] == [False]
    project.put("02", {2: 22, 3: 3})
    project.decide("people/01.csv", "skip")
    project.done()
    assert project.rows() == {2: 22, 3: 3}


def test_a_failed_slice_is_asked_about_and_retried_by_itself_once_it_is_corrected(
    project: SmallProject,
) -> None:
    project.put("01", {1: "bad"})
    project.put("02", {2: 2})
    project.apply()
    assert told(project.plan()) == [
        (Code.FAILED_SLICE, State.NEEDS_DECISION),
        (Code.FAILED_BEFORE, State.WAITS),
    ]
    project.put("01", {1: 1})
    project.done()
    assert project.rows() == {1: 1, 2: 2}


def test_what_another_writer_did_stands_until_somebody_decides(project: SmallProject) -> None:
    """Cases, "Where advice went wrong" 1: level, not edge."""
    project.put("01", {1: 10, 2: 20})
    project.done()
    delete(project, 2)
    project.put("02", {3: 3})
    project.done()
    (finding,) = project.plan().findings
    assert (finding.reason.code, project.rows()) == (Code.FOREIGN_ROWS, {1: 10, 3: 3})
    project.decide(finding.subject.text, "drop")
    project.done()
    assert (project.rows(), project.plan().findings) == ({1: 10, 2: 20, 3: 3}, ())


def test_a_table_that_is_gone_is_made_anew_only_if_a_person_says_so(project: SmallProject) -> None:
    project.put("01", {1: 10})
    project.put("02", {2: 20})
    project.done()
    shutil.rmtree(project.table)
    assert told(project.plan()) == [(Code.TABLE_GONE, State.NEEDS_DECISION)]
    project.decide("people", "wait")
    assert (project.plan().steps, project.apply().taken) == ((), ())
    project.decide("people", "new")
    project.done()
    assert project.rows() == {1: 10, 2: 20}


def test_a_manifest_that_is_gone_is_made_of_what_the_table_holds(project: SmallProject) -> None:
    project.put("01", {1: 10})
    project.done()
    project.put("02", {2: 20})
    for each in (project.folder / ".lakewright").glob("manifest.db*"):
        each.unlink()
    assert [step.action for step in project.plan().ready] == [Action.RECORD, Action.FORWARD]
    project.done()
    assert project.rows() == {1: 10, 2: 20}


def test_a_slice_belongs_to_the_run_of_its_day(tmp_path: Path, spark: SparkSession) -> None:
    """Cases, "Where advice went wrong" 7: a step has its instance."""
    project = SmallProject(tmp_path / "project", spark, by_day=True)
    project.put("01", {1: 10})
    project.put("02", {2: 20})
    project.done()
    runs = list(project.app().journal.runs(job="daily"))
    assert sorted(run.arguments for run in runs) == [("day=01",), ("day=02",)]
    assert project.rows() == {1: 10, 2: 20}


def test_a_slice_of_which_nothing_tells_the_run_is_left_to_a_person(
    tmp_path: Path, spark: SparkSession
) -> None:
    project = SmallProject(tmp_path / "project", spark, by_day=True, takes_all=True)
    project.put("01", {1: 10})
    assert told(project.plan()) == [(Code.UNCLAIMED, State.BLOCKED)]
    assert (project.apply().taken, project.rows()) == ((), {})
    with Project.load(project.folder, spark=spark) as loaded:
        loaded.run("daily", "build", day="01").check()
    project.put("01", {1: 11})
    project.decide("people/01.csv", "take")
    # A replay needs no run of a job, and may be decided anew while it is due.
    assert told(project.plan()) == [(Code.CHANGED_SLICE, State.READY)]
    project.decide("people/01.csv", "keep")
    assert project.plan().steps == ()
    project.put("01", {1: 12})
    project.decide("people/01.csv", "take")
    project.apply()
    assert project.rows() == {1: 12}


def test_rows_of_another_declaration_are_replayed_within_the_grants(project: SmallProject) -> None:
    project.put("01", {1: 10})
    project.put("02", {1: 11})
    project.done()
    project.strategy = "historic"
    project.write()
    delete(project, 1)
    (step,) = project.plan().steps
    assert (step.reason.code, step.state, step.needs) == (
        Code.REDECLARED,
        State.NEEDS_CONSENT,
        frozenset({Grant.FOREIGN}),
    )
    assert project.apply().needs_person
    project.done(Grant.FOREIGN)
    assert project.spark.read.format("delta").load(str(project.table)).count() == 2


def test_python_plans_applies_and_decides(project: SmallProject) -> None:
    project.put("01", {1: 10})
    project.put("03", {1: 30})
    with Project.load(project.folder, spark=project.spark) as loaded:
        assert [step.action for step in loaded.due("people").steps] == [Action.FORWARD]
        assert [each.fault for each in loaded.apply().taken] == [None]
        project.put("02", {1: 20})
        assert loaded.apply().needs_person
        loaded.decide("people/02.csv", "skip", reason="a test")
        assert loaded.apply(allow=["replay"]).left.steps == ()
        with pytest.raises(UsageError):
            loaded.due(allow="everything")
    assert project.rows() == {1: 30}


def test_a_choice_that_is_not_offered_is_refused_and_nothing_is_recorded(project: SmallProject) -> None:
    project.put("01", {1: 10})
    project.put("03", {1: 30})
    project.done()
    project.put("02", {1: 20})
    before = project.plan()
    for subject, choice in (("people/02.csv", "take"), ("people/01.csv", "skip"), ("nobody", "new")):
        with pytest.raises(UsageError):
            project.decide(subject, choice)
    assert project.plan() == before
    project.decide("people/02.csv", "skip")
    with pytest.raises(UsageError):
        project.decide("people/02.csv", "place")


def test_slices_that_a_later_one_replaces_are_only_recorded(tmp_path: Path, spark: SparkSession) -> None:
    project = SmallProject(tmp_path / "project", spark, strategy="full")
    project.put("01", {1: 10})
    project.put("03", {3: 30})
    project.done()
    project.put("02", {2: 20})
    (step,) = project.plan().steps
    assert (step.action, step.reason.code) == (Action.RECORD, Code.SUPERSEDED)
    project.done()
    assert project.rows() == {3: 30}


def test_two_that_apply_at_once_process_each_slice_once(project: SmallProject) -> None:
    project.put("01", {1: 10})
    project.put("02", {1: 11, 2: 20})
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(project.apply) for _ in range(2)]
    codes = {each.fault.code for one in both for each in one.result().failed if each.fault is not None}
    assert codes <= {"run_failed", "item_locked", "lease_held"}
    project.apply()
    assert (project.rows(), project.plan().steps) == ({1: 11, 2: 20}, ())
    app = project.app()
    states = [record.state.value for name in ("01", "02") for record in _records(app, f"{name}.csv")]
    assert states.count("PROCESSED") == 2


def _records(app: App, name: str) -> list[Record]:
    place = app.project.entity("people").places(app.project.lake).bronze
    return list(app.store.records(item_id(f"{place}/{name}")))


def test_a_changed_slice_whose_rows_are_kept_is_asked_about_once(project: SmallProject) -> None:
    project.put("01", {1: 10})
    project.put("02", {2: 20})
    project.done()
    project.put("01", {1: 11})
    assert told(project.plan()) == [(Code.CHANGED_SLICE, State.NEEDS_DECISION)]
    project.decide("people/01.csv", "keep")
    assert (project.plan().steps, project.apply().taken) == ((), ())
    assert project.rows() == {1: 10, 2: 20}
    project.put("01", {1: 12})
    assert told(project.plan()) == [(Code.CHANGED_SLICE, State.NEEDS_DECISION)]


def test_an_older_copy_of_a_table_waits_for_a_decision(project: SmallProject) -> None:
    """The next slice would come without the rows of those that the copy lacks."""
    project.put("01", {1: 10})
    project.done()
    backup = shutil.copytree(project.table, project.folder / "backup")
    project.put("02", {2: 20})
    project.done()
    shutil.rmtree(project.table)
    shutil.copytree(backup, project.table)
    project.put("03", {3: 30})
    assert told(project.plan()) == [(Code.TABLE_OLDER, State.NEEDS_DECISION)]
    assert project.apply().taken == ()
    project.decide("people", "new")
    project.done()
    assert project.rows() == {1: 10, 2: 20, 3: 30}


def test_a_slice_that_fails_in_a_replay_is_asked_about_and_holds_up_no_other(project: SmallProject) -> None:
    """Rules of apply, "Decisions and grants": a failed slice is retried by itself once its file changes."""
    project.put("01", {1: 10})
    project.put("03", {1: 30})
    project.done()
    project.put("02", {2: "bad"})
    project.decide("people/02.csv", "place")
    assert [each.fault is None for each in project.apply().taken] == [False]
    project.put("04", {4: 4})
    assert set(told(project.plan())) == {
        (Code.FAILED_SLICE, State.NEEDS_DECISION),
        (Code.NEW_SLICES, State.READY),
    }
    assert [each.fault for each in project.apply().taken] == [None]
    assert told(project.plan()) == [(Code.FAILED_SLICE, State.NEEDS_DECISION)]
    assert project.apply().taken == ()
    project.decide("people/02.csv", "retry")
    assert [each.fault is None for each in project.apply().taken] == [False]
    assert told(project.plan()) == [(Code.FAILED_SLICE, State.NEEDS_DECISION)]
    project.put("02", {2: 20})
    project.decide("people/02.csv", "place")
    project.done()
    assert project.rows() == {1: 30, 2: 20, 4: 4}


def test_a_correction_that_fails_leaves_the_table_as_it_was(project: SmallProject) -> None:
    project.put("01", {1: 10})
    project.put("02", {2: 20})
    project.done()
    project.put("01", {1: "bad"})
    project.decide("people/01.csv", "take")
    assert [each.fault is None for each in project.apply().taken] == [False]
    assert told(project.plan()) == [(Code.FAILED_SLICE, State.NEEDS_DECISION)]
    assert project.apply().taken == ()
    project.decide("people/01.csv", "keep")
    project.done()
    assert project.rows() == {1: 10, 2: 20}


def test_what_has_nothing_due_any_more_is_recorded_after_a_replay(project: SmallProject) -> None:
    """Rules of apply, "Builds" (cost): the next plan looks at nothing that has not moved."""
    project.put("01", {1: 10})
    project.put("03", {1: 30})
    project.done()
    app = App.open(project.folder, environ={})
    (before,) = app.store.documents(CALM)
    project.put("02", {2: 20})
    project.decide("people/02.csv", "place")
    project.done()
    (after,) = app.store.documents(CALM)
    assert before.value["digest"] != after.value["digest"]
    app.close()
