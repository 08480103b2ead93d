"""Steps that one run takes together are each reported as they ended. No Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.clean_lake import days
from tests.unit.cli.surroundings import ended, result_of
from tests.unit.due.conftest import DAYS
from tests.unit.due.test_settled import opened
from tests.unit.serve.slices import fail

from lakewright.app import App
from lakewright.due.facts import Subject
from lakewright.due.plan import Action, Code, Reason, Step
from lakewright.errors import Fault
from lakewright.manifest.item import Item
from lakewright.manifest.ledger import DiscoveredSlice
from lakewright.manifest.verdict import Verdict
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.run.request import JobRequest
from lakewright.run.result import RunResult
from lakewright.slices.application import application_of
from lakewright.slices.discovery import item_id, list_bronze
from lakewright.usecases.due.decide import decide
from lakewright.usecases.due.take import Taken, apply_plan, plan_of_project
from lakewright.usecases.due.work_done import work_done

NEW = "2022-02-01.csv"


def found(app: App, name: str) -> Item:
    """Record the new slice of an entity as it lies in bronze."""
    entity = app.project.entity(name)
    listed = list_bronze(entity.places(app.project.lake).slices, app.lake)
    new = next(each for each in listed.slices if each.name == NEW)
    application = application_of(app.project.name, entity)
    app.ledger.discover([DiscoveredSlice(new.item_id, application, name, NEW, new.fingerprint)])
    return app.ledger.item(new.item_id)


class Runs:
    """Runs that fail the new slices of some entities, and process nothing.

    Attributes:
        error: Why, if it is not the fault of the slices: they stay ready then.
    """

    error: Fault | None = None

    def __init__(self, lake: Path, *failing: str) -> None:
        for name in ("e0", "e1"):
            (lake / "lake" / "bronze" / name / NEW).write_text("id,n\n1,1\n")
        self.app = opened(lake)
        self.failing = failing
        self.requests: list[JobRequest] = []

    def __call__(self, request: JobRequest) -> RunResult:
        self.requests.append(request)
        bad = self.error or Fault("bad", code="slice_failed")
        names = [name for name in self.failing if not request.targets or name in request.targets]
        for name in names if self.error is None else ():
            fail(self.app, found(self.app, name))
        return result_of(*(ended(name, Status.FAILED, Phase.BUILD, error=bad) for name in names))

    def faults(self, *names: str) -> dict[str, str | None]:
        """Apply what is due; return the code of the fault of each entity's step."""
        announced: list[Step] = []
        applied = apply_plan(self.app, self, names, author="tests", on_step=announced.append)
        assert {each.subject.name for each in announced} == {each.step.subject.name for each in applied.taken}
        entities = (each for each in applied.taken if each.step.subject.name in ("e0", "e1"))
        return {each.step.subject.name: None if each.fault is None else each.fault.code for each in entities}


def test_a_step_that_failed_in_the_run_of_another_one_is_not_reported_as_done(lake: Path) -> None:
    runs = Runs(lake, "e0", "e1")
    assert runs.faults() == {"e0": "slice_failed", "e1": "slice_failed"}
    assert [each.targets for each in runs.requests] == [()], "one run takes the slices of both"
    assert runs.requests[0].keep_going, "what fails before BUILD holds up nothing but what reads it"


def test_what_failed_in_the_run_of_another_step_is_not_tried_again(lake: Path) -> None:
    """A full disk is full for the whole run: each further one would cost as much, and fail as well."""
    runs = Runs(lake, "e1", "g1")
    runs.error = Fault("no space", code="storage_unavailable")
    assert runs.faults()["e1"] == "storage_unavailable"
    assert [each.targets for each in runs.requests].count(()) == 1
    assert not any({"e1", "g1"} & set(each.targets) for each in runs.requests)


def test_a_run_leaves_out_entities_that_wait_for_a_person(lake: Path) -> None:
    runs = Runs(lake, "e0")
    fail(runs.app, found(runs.app, "e1"))
    assert runs.faults() == {"e0": "slice_failed"}
    assert [each.targets for each in runs.requests] == [("e0", "g0", "g1", "g2")]


def test_only_what_is_named_is_taken(lake: Path) -> None:
    runs = Runs(lake, "e0", "e1")
    assert runs.faults("e1") == {"e1": "slice_failed"}
    assert [each.targets for each in runs.requests] == [("e1", "g0", "g1", "g2")]


def test_without_parameters_only_the_named_targets_are_built_with_slices(lake: Path) -> None:
    """Each other target has a step of its own, which nobody asked for."""
    model = (lake / "model.yml").read_text()
    for part in ("parameters: [{name: day, type: date}], ", ", slices: '$day*'"):
        model = model.replace(part, "")
    (lake / "model.yml").write_text(model)
    runs = Runs(lake, "e0", "e1")
    assert runs.faults("e1", "g1") == {"e1": "slice_failed"}
    assert [each.targets for each in runs.requests] == [("e1", "g1")]


def test_slices_that_were_applied_without_a_run_are_counted_by_what_they_changed(lake: Path) -> None:
    """`processing-strategies.md`, "Metrics" of Merge: equal rows count as updated."""
    metrics = {"strategy": "merge", "records_in_slice": 5, "inserted": 1, "updated": 4, "changed": 2}
    step = Step("forward e0", Action.FORWARD, Subject("e0"), Reason(Code.NEW_SLICES))
    (row,) = work_done(opened(lake), [], [Taken(step, slices=(metrics, metrics))])
    assert (row["entity"], row["slices"], row["rows_in"], row["changed"]) == ("e0", 2, 10, 6)


def test_of_full_slices_that_are_to_be_processed_again_those_that_are_gone_are_left_out(lake: Path) -> None:
    """A person emptied the table; the plan asked about each former export that bronze no longer has."""
    model = lake / "model.yml"
    model.write_text(model.read_text().replace("processtype: merge", "processtype: full"))
    app = opened(lake)
    app.make_store()
    entity = app.project.entity("e0")
    *gone, last = (f"{day}.csv" for day in days(DAYS))
    ids = {name: item_id(app.chain(entity).folder.place(name)) for name in (*gone, last)}
    for each in ids.values():
        app.ledger.requeue(each, "emptied", fingerprint={}, emptied_by="a run")
    shutil.rmtree(lake / "lake" / "silver" / "e0")
    for name in gone:
        (lake / "lake" / "bronze" / "e0" / name).unlink()
    decide(app, "e0", "again", author="tests", reason="wanted")
    record, forward = plan_of_project(app, ["e0"]).steps
    assert (record.action, record.reason.code) == (Action.RECORD, Code.SUPERSEDED)
    assert [each.name for each in record.slices] == gone
    assert forward.action is Action.FORWARD
    assert [each.name for each in forward.slices] == [last]
    apply_plan(app, Runs(lake), ["e0"], author="tests")
    verdicts = {
        name: app.ledger.item(each).verdict(application_of("bench", entity)) for name, each in ids.items()
    }
    assert verdicts == {**dict.fromkeys(gone, Verdict.SKIPPED), last: Verdict.READY}
