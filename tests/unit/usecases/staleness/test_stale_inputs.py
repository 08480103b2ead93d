"""What is to be built again is built in the order in which targets read each other; rows are added once."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from deltalake import write_deltalake
from tests.unit.usecases.staleness.test_downstream import PROJECT, built

from lakewright.app import App
from lakewright.manifest.journal import TargetPhase
from lakewright.manifest.store import Write
from lakewright.plan.other_runs import run_of
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.plan.step import Step
from lakewright.run.added_before import ADDED_BEFORE
from lakewright.run.request import JobRequest
from lakewright.run.step_warnings import with_warning
from lakewright.usecases.plan_job import appends_to_build, plan_job
from lakewright.usecases.staleness.downstream import downstream_taints
from lakewright.usecases.staleness.repeated_appends import commands_adding_once

MODEL = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
relations:
  orders: {kind: entity, entity: orders}
  visits: {kind: file, format: json, location: gold/visits, partitions: [{name: day, type: date}]}
  log: {kind: delta, location: gold/log}
  a_totals: {kind: delta, location: gold/totals}
  values: {kind: values, records: [{id: 1}], columns: {id: long}}
mappings:
  orders: {kind: relation, relation: orders}
  visits: {kind: relation, relation: visits}
  values: {kind: relation, relation: values}
targets:
  visits: {kind: relation, mapping: orders, relation: visits, partition: {day: $day}}
  log: {kind: relation, mapping: values, relation: log, mode: APPEND}
  a_totals: {kind: relation, mapping: visits, relation: a_totals}
jobs:
  daily:
    parameters: [{name: day, type: date}]
    targets: [visits, log]
  totals:
    targets: [a_totals]
"""
DAY = "2022-01-01"


def lake(path: Path) -> App:
    (path / "model").mkdir()
    (path / "project.yml").write_text(PROJECT)
    (path / "model/model.yml").write_text(MODEL)
    app = App.open(path)
    app.make_store()
    built(app, "daily", ("visits", "log"), hours_ago=2, day=DAY)
    built(app, "totals", ("a_totals",), hours_ago=1)
    puts = downstream_taints(app, app.project.entity("orders"), "went back")
    app.store.write(Write(puts=puts))
    return app


def build_of_log(app: App, day: str) -> Step:
    request = JobRequest("daily", Phase.BUILD, (f"day={day}",), targets=("log",))
    (step,) = (each for each in plan_job(app, request).steps() if each.phase is Phase.BUILD)
    return step


def test_rows_that_a_build_adds_once_more_are_told(tmp_path: Path) -> None:
    app = lake(tmp_path)
    assert build_of_log(app, DAY).warning is None  # the table was removed by hand: no rows are there
    table: Any = import_module("pyarrow").table({"id": [1]})
    write_deltalake(tmp_path / "gold/log", table)
    assert build_of_log(app, "2022-01-02").warning is None
    step = build_of_log(app, DAY)
    assert step.warning is not None
    assert step.warning.code == ADDED_BEFORE
    assert f"target 'log' adds its rows of day={DAY} once more: run " in step.warning.message
    assert f"`lakewright job daily truncate -t log day={DAY} --yes`" in str(step.warning.remedy)
    assert with_warning(Outcome(), step) == Outcome(Status.SUCCESS_WITH_ERRORS, error=step.warning)
    assert with_warning(Outcome(Status.FAILED), step) == Outcome(Status.FAILED)

    # It may be meant so.
    model = tmp_path / "model/model.yml"
    model.write_text(MODEL.replace("mode: APPEND", "mode: APPEND, buildPolicy: ALWAYS"))
    with closing(App.open(tmp_path)) as other:
        meant = build_of_log(other, DAY)
    assert meant.warning is not None
    assert with_warning(Outcome(), meant) == Outcome(
        warnings=(f"{meant.warning.message}. {meant.warning.remedy}",)
    )
    model.write_text(MODEL)

    # Commands choose the others.
    runs = [run_of("daily", {"day": day}) for day in (DAY, "2022-01-02")]
    assert commands_adding_once(app, runs) == (
        f"lakewright job daily build -t visits day={DAY}",
        "lakewright job daily build day=2022-01-02",
    )
    # What a run names is typed once it has added its rows, unless it does not build them.
    request = JobRequest("daily", Phase.BUILD, ("day=2022-01-02",))
    assert commands_adding_once(app, runs, partial(appends_to_build, app, request)) == (
        f"lakewright job daily build -t visits day={DAY},2022-01-02",
    )
    chosen = replace(request, targets=("visits",))
    assert len(commands_adding_once(app, runs, partial(appends_to_build, app, chosen))) == 2
    assert not appends_to_build(app, replace(request, phase=Phase.CREATE))
    # The runs stay in order, in which they take slices; what is to be built again, other commands build.
    built(app, "daily", ("log",), day="2022-01-03")
    every = [*runs, run_of("daily", {"day": "2022-01-03"})]
    assert commands_adding_once(app, every) == (
        f"lakewright job daily build -t visits day={DAY}",
        "lakewright job daily build day=2022-01-02",
        "lakewright job daily build -t visits day=2022-01-03",
    )
    place = TargetPhase("shop", "log", "BUILD", {"day": "2022-01-02"})
    app.store.write(Write(puts=(place.tainted("its rows were removed", lost_in="r1"),)))
    assert commands_adding_once(app, every) == (
        f"lakewright job daily build -t visits day={DAY},2022-01-02,2022-01-03",
    )
    app.store.write(Write(puts=(place.untainted(),)))

    app.begin_run()
    emptied = built(app, "daily", (), day="2022-01-02")
    entry = {"name": "log", "phase": "TRUNCATE", "status": "SUCCESS", "instance": {"day": "2022-01-02"}}
    app.journal.record_targets(emptied, {0: {**entry, "reasons": []}})
    # The log has no partitions: any day empties it.
    assert build_of_log(app, DAY).warning is None
    app.close()
