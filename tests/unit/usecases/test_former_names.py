"""A target that was renamed is known by what it wrote under its former name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.usecases import left
from tests.unit.usecases.staleness.test_downstream import MODEL, lake, process

from lakewright.app import App
from lakewright.manifest.journal import Run
from lakewright.manifest.store import Write
from lakewright.plan.phase import Phase
from lakewright.plan.status import Planned
from lakewright.run.former_names import FormerNames
from lakewright.run.outputs import WRITES, recorded_places, written_by
from lakewright.run.request import JobRequest
from lakewright.usecases.plan_job import plan_job
from lakewright.usecases.run_job import _rename_taints
from lakewright.usecases.staleness.declared_nodes import offline_lake
from lakewright.usecases.staleness.downstream import downstream_taints, taint_after_processing

RENAMED = {"names": "labels", "whole": "entire", "report": "summary"}
"""Targets by their former names; their relations keep theirs."""


def built(app: App, job: str, names: Sequence[str], **parameters: str) -> None:
    """Record a run that built targets with what they wrote, as a job does."""
    app.begin_run()
    at = datetime.now(UTC) - timedelta(hours=1)
    run = app.journal.start_run(Run(app.run_id, "shop", job, "BUILD", parameters, at, app.holder))
    results = []
    for name in names:
        places = written_by(app.project, offline_lake(app), app.project.jobs[job], name, parameters)
        assert places
        entry = {"name": name, "phase": "BUILD", "status": "SUCCESS", "instance": parameters, "reasons": []}
        results.append({**entry, WRITES: recorded_places(places)})
    app.journal.record_targets(run, dict(enumerate(results)))
    app.journal.finish_run(run, "SUCCESS", finished=at)


def renamed(app: App, path: Path) -> App:
    """Return the project with other names of its targets."""
    app.close()
    text = MODEL
    for former, name in RENAMED.items():
        text = text.replace(f"  {former}: {{kind: relation, mapping", f"  {name}: {{kind: relation, mapping")
    text = text.replace("[orders, names, others, whole,", "[orders, labels, others, entire,")
    (path / "model/model.yml").write_text(text.replace("targets: [report]", "targets: [summary]"))
    return App.open(path)


@pytest.fixture
def app(tmp_path: Path) -> App:
    found = lake(tmp_path)
    for day in ("2022-01-01", "2022-01-02"):
        built(found, "daily", ("names", "whole"), day=day)
    built(found, "weekly", ("report",))
    return found


STALE = [
    ("entire", ({"day": "2022-01-02"},)),
    ("labels", ({"day": "2022-01-01"}, {"day": "2022-01-02"})),
    ("summary", ({},)),
]


def stale(app: App) -> list[tuple[str, tuple[Mapping[str, Any], ...]]]:
    return left.tainted(app)


def test_what_was_built_under_a_former_name_is_stale_after_an_undo_and_a_new_slice(
    app: App, tmp_path: Path
) -> None:
    """The history had no build of the new name, so that gold stayed stale, and all was calm."""
    app = renamed(app, tmp_path)
    orders = app.project.entity("orders")
    app.store.write(Write(puts=downstream_taints(app, orders, "went back to version 17")))
    assert stale(app) == STALE
    for each in tuple(app.journal.taints("shop")):
        app.store.write(Write(puts=(each.place.untainted(),)))
    assert taint_after_processing(app, orders, [process(app, tmp_path, "2022-01-02.csv")]) is None
    assert [target for target, _ in stale(app)] == ["entire", "labels", "summary"]
    app.close()


def test_what_was_stale_before_it_was_renamed_stays_so_in_plans_and_runs(app: App, tmp_path: Path) -> None:
    orders = app.project.entity("orders")
    app.store.write(Write(puts=downstream_taints(app, orders, "went back to version 17")))
    app = renamed(app, tmp_path)
    assert stale(app) == STALE
    plan = plan_job(app, JobRequest("weekly", Phase.BUILD))
    (step,) = (each for each in plan.steps() if each.phase is Phase.BUILD)
    assert step.status is Planned.WOULD_RUN
    assert any("went back to version 17" in reason for reason in step.reasons)
    assert {each.place.target for each in app.journal.taints("shop")} == set(RENAMED), "a plan writes nothing"
    _rename_taints(app)
    assert {each.place.target for each in app.journal.taints("shop")} == set(RENAMED.values())
    assert stale(app) == STALE
    app.close()


def test_a_target_that_writes_another_place_has_no_former_name(app: App, tmp_path: Path) -> None:
    orders = app.project.entity("orders")
    app.store.write(Write(puts=downstream_taints(app, orders, "went back to version 17")))
    app = renamed(app, tmp_path)
    model = tmp_path / "model/model.yml"
    model.write_text(model.read_text().replace("location: gold/report", "location: gold/reports"))
    app.close()
    app = App.open(tmp_path)
    assert [target for target, _ in stale(app)] == ["entire", "labels"]
    taint = next(each for each in app.journal.taints("shop") if each.place.target == "report")
    assert FormerNames(app.project, offline_lake(app), app.journal).of_taint(taint) is None
    app.close()
