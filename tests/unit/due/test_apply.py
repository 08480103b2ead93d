"""Small real lakes to which things happen: doing what is due and deciding what is asked makes them right."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable
from tests.sessions import no_session
from tests.silver import rows_of
from tests.small_project import SmallProject, delete, told
from tests.spark.kept import put_back

from lakewright.app import App
from lakewright.due.facts import Verb
from lakewright.due.plan import Action, Code, Plan, State
from lakewright.errors import UsageError
from lakewright.lake.observation import forget_log
from lakewright.manifest.journal import CALM
from lakewright.manifest.record import Record
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.slices.discovery import item_id
from lakewright.spec.grants import Grant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> SmallProject:
    return SmallProject(tmp_path / "project", spark)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("settled") / "project"


@pytest.fixture
def settled(place: Path, spark: SparkSession) -> SmallProject:
    """A project whose slices, those of the first and of the third day, are processed."""

    def build() -> None:
        project = SmallProject(place, spark)
        project.put("01", {1: 10, 2: 20})
        project.put("03", {1: 30})
        project.done()

    put_back(place, build, spark)
    return SmallProject(place, spark)


def test_new_slices_are_taken_and_nothing_is_due_then(project: SmallProject) -> None:
    project.put("01", {1: 10, 2: 20})
    project.put("02", {2: 21})
    (step,) = project.plan().steps
    assert (step.action, [each.name for each in step.slices]) == (Action.FORWARD, ["01.csv", "02.csv"])
    assert len(project.done().taken) == 1
    assert project.rows() == {1: 10, 2: 21}


def test_a_table_that_a_person_emptied_or_removed_is_left_alone_until_somebody_wants_it(
    settled: SmallProject,
) -> None:
    """Rules of apply, "Runs": `apply` processed all slices again, minutes after a person had emptied it."""
    settled.job("daily", phase=Phase.TRUNCATE).check()
    settled.put("04", {4: 4})
    plan = settled.plan()
    assert (plan.steps, [each.reason.code for each in plan.findings]) == ((), [Code.WITHDRAWN])
    assert settled.apply(sessions=no_session).taken == ()
    settled.decide("people", "again")
    settled.done()
    assert settled.rows() == {1: 30, 2: 20, 4: 4}

    settled.job("daily", phase=Phase.DESTROY).check()
    assert [each.reason.code for each in settled.plan().findings] == [Code.WITHDRAWN]
    settled.job("daily").check()
    assert settled.rows() == {1: 30, 2: 20, 4: 4}
    assert settled.plan() == Plan()


def test_a_late_and_a_corrected_slice_are_asked_about_and_taken_in_their_places_by_one_replay(
    settled: SmallProject,
) -> None:
    """Cases, "Where advice went wrong" 4 and 5: the decision says where a slice goes; one replay with both.

    Rules of apply, "Builds" (cost): the next plan looks at nothing that has not moved.
    """
    calm = calm_digest(settled)
    settled.put("02", {1: 20, 2: 20})
    assert told(settled.plan()) == [(Code.LATE_SLICE, State.NEEDS_DECISION)]
    assert settled.apply().taken == ()
    settled.put("03", {1: 31, 3: 3})
    settled.put("04", {4: 4})
    assert {code for code, _ in told(settled.plan())} >= {Code.LATE_SLICE, Code.CHANGED_SLICE}
    settled.decide("people/02.csv", "place")
    settled.decide("people/03.csv", "take")
    (step,) = settled.plan().ready
    assert [each.name for each in step.slices] == ["02.csv", "03.csv", "04.csv"]
    settled.done()
    assert settled.rows() == {1: 31, 2: 20, 3: 3, 4: 4}
    assert calm_digest(settled) != calm


def calm_digest(project: SmallProject) -> object:
    """Return the digest of what the manifest says has nothing due."""
    (found,) = project.app().store.documents(CALM)
    return found.value["digest"]


def test_a_late_slice_can_be_applied_after_the_others_or_left_out(settled: SmallProject) -> None:
    settled.put("00", {1: 0})
    settled.put("02", {1: 20})
    settled.decide("people/00.csv", "skip")
    settled.decide("people/02.csv", "end")
    settled.done()
    assert settled.rows() == {1: 20, 2: 20}
    assert settled.plan().steps == ()


def test_a_failed_slice_is_asked_about_and_retried_by_itself_once_it_is_corrected(
    project: SmallProject,
) -> None:
    """Cases, "Where advice went wrong" 6: what changed while it waited is taken as it is."""
    project.put("01", {1: "bad"})
    project.put("02", {2: 2})
    assert [each.fault is None for each in project.apply().taken] == [False]
    assert told(project.plan()) == [
        (Code.FAILED_SLICE, State.NEEDS_DECISION),
        (Code.FAILED_BEFORE, State.WAITS),
    ]
    project.put("02", {2: 22, 3: 3})
    project.put("01", {1: 1})
    project.done()
    assert project.rows() == {1: 1, 2: 22, 3: 3}


def test_a_slice_that_the_brake_stops_is_applied_once_a_person_allows_it(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Rules of apply, "Decisions and grants": `deletes`. What was allowed once is applied again unasked."""
    settings = {"delete_missing": True, "delete_scope": "full", "delete_floor": 1}
    project = SmallProject(tmp_path / "project", spark, settings)
    project.put("01", {1: 10, 2: 20, 3: 30})
    project.put("03", {1: 11})
    assert [each.fault and each.fault.code for each in project.apply().taken] == ["delete_brake"]
    (step,) = project.plan().steps
    asked = (Code.FAILED_SLICE, State.NEEDS_CONSENT, frozenset((Grant.DELETES,)))
    assert (step.reason.code, step.state, step.needs) == asked
    assert [each.verb for each in step.choices] == [Verb.RETRY, Verb.SKIP]
    project.settings = {**settings, "delete_floor": 5}
    project.write()
    assert told(project.plan()) == [(Code.NEW_SLICES, State.READY)]  # under another declaration it may do
    project.settings = settings
    project.write()
    project.done(Grant.DELETES)
    assert live(project) == {1: 11}

    project.put("02", {1: 9, 2: 21, 3: 31})
    project.decide("people/02.csv", "place")
    project.done()
    assert live(project) == {1: 11}

    project.put("03", {2: 12})  # a correction is another slice
    project.decide("people/03.csv", "take")
    assert [each.fault and each.fault.code for each in project.apply().taken] == ["delete_brake"]
    assert [(each.reason.code, each.state, each.needs) for each in project.plan().steps] == [asked]
    project.done(Grant.DELETES)
    assert live(project) == {2: 12}


def live(project: SmallProject) -> dict[int, int]:
    """Return the records that are not marked as deleted."""
    return {row["id"]: row["age"] for row in rows_of(project.table) if not row["dlf_deleted"]}


def test_a_late_slice_whose_time_is_before_versions_of_the_table_needs_consent(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Rules of apply, "Decisions and grants": `backdated`; a plan says so before a run refuses the slice."""
    project = SmallProject(tmp_path / "project", spark, {"time": "name"}, strategy="historic")
    project.put("2024-05-02", {1: 10})
    project.done()
    project.put("2024-05-01", {2: 20})
    project.decide("people/2024-05-01.csv", "end")
    (step,) = project.plan().steps
    assert (step.reason.params["error"], step.state) == ("backdated", State.NEEDS_CONSENT)
    assert list(step.needs) == [Grant.BACKDATED]
    assert [each.verb for each in step.choices] == [Verb.PLACE, Verb.SKIP]
    assert project.apply().taken == ()
    project.done(Grant.BACKDATED)
    assert project.rows() == {1: 10, 2: 20}


def test_what_another_writer_did_stands_until_somebody_decides(settled: SmallProject) -> None:
    """Cases, "Where advice went wrong" 1: level, not edge."""
    delete(settled, 2)
    settled.put("04", {4: 4})
    settled.done()
    (finding,) = settled.plan().findings
    assert (finding.reason.code, settled.rows()) == (Code.FOREIGN_ROWS, {1: 30, 4: 4})
    settled.decide(finding.subject.text, "drop")
    settled.done()
    assert (settled.rows(), settled.plan().findings) == ({1: 30, 2: 20, 4: 4}, ())


def test_a_table_that_is_gone_is_made_anew_only_if_a_person_says_so(settled: SmallProject) -> None:
    shutil.rmtree(settled.table)
    assert told(settled.plan()) == [(Code.TABLE_GONE, State.NEEDS_DECISION)]
    settled.decide("people", "wait")
    assert (settled.plan().steps, settled.apply().taken) == ((), ())
    settled.decide("people", "new")
    settled.done()
    assert settled.rows() == {1: 30, 2: 20}


def test_a_manifest_that_is_gone_is_made_of_what_the_table_holds(settled: SmallProject) -> None:
    settled.put("04", {4: 4})
    for each in (settled.folder / ".lakewright").glob("manifest.db*"):
        each.unlink()
    assert [step.action for step in settled.plan().ready] == [Action.RECORD, Action.FORWARD]
    settled.done()
    assert settled.rows() == {1: 30, 2: 20, 4: 4}


def test_a_slice_of_which_nothing_tells_the_run_is_left_to_a_person(
    tmp_path: Path, spark: SparkSession
) -> None:
    project = SmallProject(tmp_path / "project", spark, by_day=True, takes_all=True)
    project.put("01", {1: 10})
    assert told(project.plan()) == [(Code.UNCLAIMED, State.BLOCKED)]
    assert (project.apply().taken, project.rows()) == ((), {})
    project.job("daily", "day=01").check()
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


def test_rows_of_another_declaration_are_replayed_within_the_grants(settled: SmallProject) -> None:
    settled.strategy = "historic"
    settled.write()
    delete(settled, 1)
    (step,) = settled.plan().steps
    assert (step.reason.code, step.state, step.needs) == (
        Code.REDECLARED,
        State.NEEDS_CONSENT,
        frozenset({Grant.FOREIGN}),
    )
    assert settled.apply().needs_person
    settled.done(Grant.FOREIGN)
    assert DeltaTable(settled.table).count() == 3


def test_a_choice_that_is_not_offered_is_refused_and_nothing_is_recorded(settled: SmallProject) -> None:
    settled.put("02", {1: 20})
    before = settled.plan()
    for subject, choice in (("people/02.csv", "take"), ("people/01.csv", "skip"), ("nobody", "new")):
        with pytest.raises(UsageError):
            settled.decide(subject, choice)
    assert settled.plan() == before
    settled.decide("people/02.csv", "skip")
    with pytest.raises(UsageError):
        settled.decide("people/02.csv", "place")


def test_an_entity_with_another_name_goes_on_with_its_slices_and_its_table(settled: SmallProject) -> None:
    """Rules of apply, "Decisions and grants": something renamed."""
    delete(settled, 2)
    (finding,) = settled.plan().findings
    settled.decide(finding.subject.text, "keep")
    place = settled.folder / "model.yml"
    model = json.loads(place.read_text())
    model["entities"] = {"persons": model["entities"]["people"]}
    model["targets"]["people"]["entity"] = "persons"
    place.write_text(json.dumps(model))
    assert told(settled.plan()) == [(Code.BROKEN, State.BLOCKED)]
    model["entities"]["persons"]["moved_from"] = "people"
    place.write_text(json.dumps(model))
    assert (settled.plan().steps, settled.plan().findings) == ((), ())
    settled.put("04", {4: 4})
    settled.done()
    assert settled.rows() == {1: 30, 4: 4}


@pytest.mark.parametrize(("late", "rows"), [("place", {1: 30, 2: 21}), ("skip", {1: 30, 2: 20})])
def test_the_declaration_decides_about_late_slices(
    settled: SmallProject, late: str, rows: dict[int, int]
) -> None:
    """Rules of apply, "Decisions and grants": `late_slices`. A run of the job leaves them to `apply`."""
    settled.settings = {"late_slices": late}
    settled.write()
    settled.put("02", {1: 20, 2: 21})
    assert settled.job("daily").status is not Status.FAILED
    assert settled.rows() == {1: 30, 2: 20}
    assert [state for _, state in told(settled.plan())] == [State.READY]
    settled.done()
    assert settled.rows() == rows


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


def test_a_changed_slice_whose_rows_are_kept_is_asked_about_once(settled: SmallProject) -> None:
    settled.put("01", {1: 11})
    assert told(settled.plan()) == [(Code.CHANGED_SLICE, State.NEEDS_DECISION)]
    settled.decide("people/01.csv", "keep")
    assert (settled.plan().steps, settled.apply().taken) == ((), ())
    assert settled.rows() == {1: 30, 2: 20}
    settled.put("01", {1: 12})
    assert told(settled.plan()) == [(Code.CHANGED_SLICE, State.NEEDS_DECISION)]


def test_an_older_copy_of_a_table_waits_for_a_decision(settled: SmallProject) -> None:
    """The next slice would come without the rows of those that the copy lacks."""
    for each in (settled.table / "_delta_log").glob("*0001.*"):
        each.unlink()
    forget_log(settled.spark, str(settled.table))
    settled.put("04", {4: 4})
    assert told(settled.plan()) == [(Code.TABLE_OLDER, State.NEEDS_DECISION)]
    assert settled.apply().taken == ()
    settled.decide("people", "new")
    settled.done()
    assert settled.rows() == {1: 30, 2: 20, 4: 4}


def test_a_slice_that_fails_in_a_replay_is_asked_about_and_holds_up_no_other(settled: SmallProject) -> None:
    """Rules of apply, "Decisions and grants": a failed slice is retried by itself once its file changes."""
    settled.put("02", {2: "bad"})
    settled.decide("people/02.csv", "place")
    assert [each.fault is None for each in settled.apply().taken] == [False]
    settled.put("04", {4: 4})
    assert set(told(settled.plan())) == {
        (Code.FAILED_SLICE, State.NEEDS_DECISION),
        (Code.NEW_SLICES, State.READY),
    }
    assert [each.fault for each in settled.apply().taken] == [None]
    assert told(settled.plan()) == [(Code.FAILED_SLICE, State.NEEDS_DECISION)]
    assert settled.apply().taken == ()
    settled.decide("people/02.csv", "retry")
    assert [each.fault is None for each in settled.apply().taken] == [False]
    assert told(settled.plan()) == [(Code.FAILED_SLICE, State.NEEDS_DECISION)]
    settled.put("02", {2: 22})
    settled.decide("people/02.csv", "place")
    settled.done()
    assert settled.rows() == {1: 30, 2: 22, 4: 4}


def test_a_correction_that_fails_leaves_the_table_as_it_was(settled: SmallProject) -> None:
    settled.put("01", {1: "bad"})
    settled.decide("people/01.csv", "take")
    assert [each.fault is None for each in settled.apply().taken] == [False]
    assert told(settled.plan()) == [(Code.FAILED_SLICE, State.NEEDS_DECISION)]
    assert settled.apply().taken == ()
    settled.decide("people/01.csv", "keep")
    settled.done()
    assert settled.rows() == {1: 30, 2: 20}
