"""Steps that one run takes together are each reported as they ended. No Spark."""

from __future__ import annotations

from pathlib import Path

from tests.unit.cli.surroundings import ended, result_of
from tests.unit.due.test_settled import opened
from tests.unit.serve.slices import fail

from lakewright.app import App
from lakewright.due.plan import Code
from lakewright.errors import Fault
from lakewright.manifest.discovery import DiscoveredSlice
from lakewright.manifest.item import Item
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.run.request import JobRequest
from lakewright.run.result import RunResult
from lakewright.slices.application import application_of
from lakewright.slices.discover import list_bronze
from lakewright.usecases.due.take import apply_plan

NEW = "2022-02-01.csv"


def found(app: App, name: str) -> Item:
    """Record the new slice of an entity as it lies in bronze."""
    entity = app.project.entity(name)
    listed = list_bronze(entity.places(app.project.lake).slices, app.lake)
    new = next(each for each in listed.slices if each.name == NEW)
    application = application_of(app.project.name, entity)
    app.ledger.discover([DiscoveredSlice(new.item_id, application, name, NEW, new.fingerprint)])
    return app.ledger.item(new.item_id)


def test_a_step_that_failed_in_the_run_of_another_one_is_not_reported_as_done(lake: Path) -> None:
    for name in ("e0", "e1"):
        (lake / "lake" / "bronze" / name / NEW).write_text("id,n\n1,1\n")
    app = opened(lake)
    runs = []

    def run(request: JobRequest) -> RunResult:
        """Fail the new slices of both entities, as a run does whose job has both."""
        runs.append(request)
        failed = []
        for name in ("e0", "e1"):
            fail(app, found(app, name))
            failed.append(ended(name, Status.FAILED, Phase.BUILD, error=Fault("bad", code="slice_failed")))
        return result_of(*failed)

    applied = apply_plan(app, run, author="tests")
    faults = {each.step.subject.name: each.fault for each in applied.taken}
    assert len(runs) == 1
    assert {name: fault.code for name, fault in faults.items() if fault is not None} == {
        "e0": "run_failed",
        "e1": "slice_failed",
    }
    assert {step.reason.code for step in applied.left.asked} == {Code.FAILED_SLICE}
