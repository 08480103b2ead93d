"""What is to be built again is built in the order in which targets read each other; rows are added once."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from deltalake import write_deltalake
from tests.commands import InProcess
from tests.silver import pa
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
from lakewright.run.kept_rows import after_build
from lakewright.run.request import JobRequest
from lakewright.run.step_warnings import with_warning
from lakewright.usecases.plan_job import appends_to_build, plan_job
from lakewright.usecases.staleness.downstream import downstream_taints
from lakewright.usecases.staleness.repeated_appends import commands_adding_once
from lakewright.usecases.staleness.stale_inputs import keep_dirty, taint_left_out
from lakewright.usecases.staleness.tainted_targets import tainted_targets
from lakewright.usecases.status import project_status

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


def run_again(app: App, job: str, name: str, **parameters: str) -> Any:
    """Record a build of a tainted target, whose taint it removes, as a run does."""
    before = tuple(app.journal.taints("shop"))
    run = built(app, job, (name,), 0, **parameters)
    app.store.write(Write(puts=(TargetPhase("shop", name, "BUILD", parameters).untainted(),)))
    result: Any = SimpleNamespace(job=job, run_id=run.run_id)
    keep_dirty(app, before, result)
    return run


def test_what_others_read_is_named_first_and_no_rows_of_others_are_added(tmp_path: Path) -> None:
    app = lake(tmp_path)
    assert [(each.target, each.commands) for each in tainted_targets(app)] == [
        ("visits", (f"lakewright job daily build -t visits day={DAY}",)),
        ("a_totals", ("lakewright job totals build",)),
    ]
    app.close()


def test_what_is_built_from_a_target_that_is_to_be_built_again_stays_dirty(tmp_path: Path) -> None:
    app = lake(tmp_path)
    run = run_again(app, "totals", "a_totals")
    (visits, totals) = tainted_targets(app)
    assert (visits.target, totals.target) == ("visits", "a_totals")
    assert totals.reason == f"run {run.run_id} built it from visits, which is to be built again"

    run_again(app, "daily", "visits", day=DAY)
    run_again(app, "totals", "a_totals")
    assert list(tainted_targets(app)) == []
    app.close()


def build_of_log(app: App, day: str) -> Step:
    request = JobRequest("daily", Phase.BUILD, (f"day={day}",), targets=("log",))
    (step,) = (each for each in plan_job(app, request).steps() if each.phase is Phase.BUILD)
    return step


def test_status_says_how_rows_that_came_twice_come_once_until_they_are_emptied(tmp_path: Path) -> None:
    """A task that a scheduler tried again ended well, and rows were there twice, without a word."""
    app = lake(tmp_path)
    write_deltalake(tmp_path / "gold/log", import_module("pyarrow").table({"id": [1]}))
    step = build_of_log(app, DAY)
    assert step.warning is not None
    place = TargetPhase("shop", "log", "BUILD", {"day": DAY})
    app.store.write(Write(puts=(after_build(place, step),)))
    run = built(app, "daily", (), day=DAY)
    told = {"name": "log", "phase": "BUILD", "status": "SUCCESS_WITH_ERRORS", "instance": {"day": DAY}}
    app.journal.record_targets(run, {0: {**told, "reasons": [], "error": step.warning.as_json()}})
    app.journal.finish_run(run, "SUCCESS_WITH_ERRORS", finished=run.started)
    built(app, "daily", ("visits", "log"), day="2022-01-02")  # a later run does not make it forgotten

    status = project_status(app)
    assert status.warned == ()
    (again,) = (each for each in status.tainted if each.target == "log")
    assert re.fullmatch("its rows came more than once: run .* had added them", again.reason)
    both = f"{DAY},2022-01-02"
    assert again.commands[0] == f"lakewright job daily truncate -t log day={both} --yes"
    assert "log" in again.commands[1]
    assert f"day={both}" in again.commands[1]

    # It may be meant so.
    model = tmp_path / "model/model.yml"
    model.write_text(MODEL.replace("mode: APPEND", "mode: APPEND, buildPolicy: ALWAYS"))
    with closing(App.open(tmp_path)) as other:
        assert "log" not in {each.target for each in tainted_targets(other)}
        meant = build_of_log(other, DAY)
    assert meant.warning is not None
    assert meant.warning.code == ADDED_BEFORE
    assert after_build(place, meant).value is None
    app.close()


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


def test_lines_that_share_instances_of_a_job_name_one_command(tmp_path: Path) -> None:
    """Two lines named `day=1,2` and `day=2` of the same job: typing both did the work of day 2 twice."""
    app = lake(tmp_path)
    for target, day in (("log", DAY), ("visits", "2022-01-02"), ("log", "2022-01-03")):
        put = TargetPhase("shop", target, "BUILD", {"day": day}).tainted(f"of {target}")
        app.store.write(Write(puts=(put,)))
    (log, *others) = tainted_targets(app)
    typed = "lakewright job daily build day=2022-01-01,2022-01-03"
    assert (log.target, log.commands) == ("log", (typed,))
    assert [(each.target, each.reason, each.commands) for each in others] == [
        ("visits", "went back", (typed,)),
        ("visits", "of visits", ("lakewright job daily build -t visits day=2022-01-02",)),
        ("a_totals", "went back", ("lakewright job totals build",)),
    ]
    page = InProcess(tmp_path).run("status").out
    assert "also visits (day=2022-01-01): went back" in page
    assert page.count(typed) == 1
    app.close()


def test_a_line_that_reads_what_another_job_builds_is_not_merged_with_one_before_that(tmp_path: Path) -> None:
    app = lake(tmp_path)
    text = MODEL.replace(
        "relation: a_totals}", "relation: a_totals}\n  last: {kind: relation, mapping: totals, relation: log}"
    )
    text = text.replace("mappings:\n", "mappings:\n  totals: {kind: relation, relation: a_totals}\n")
    (tmp_path / "model/model.yml").write_text(
        text.replace("targets: [visits, log]", "targets: [visits, last]")
    )
    app.store.write(Write(puts=(TargetPhase("shop", "last", "BUILD", {"day": DAY}).tainted("too"),)))
    app.close()
    app = App.open(tmp_path)
    assert [each.target for each in tainted_targets(app)] == ["visits", "a_totals", "last"]
    app.close()


def test_what_a_run_of_chosen_targets_left_out_is_stale_if_it_reads_them(tmp_path: Path) -> None:
    """After `job daily build -t visits --force`, the report of the day kept the rows of before, silently."""
    app = lake(tmp_path)
    app.close()
    text = MODEL.replace("targets: [visits, log]", "targets: [visits, a_totals, log]")
    (tmp_path / "model/model.yml").write_text(text)
    app = App.open(tmp_path)
    for taint in tuple(app.journal.taints("shop")):
        app.store.write(Write(puts=(taint.place.untainted(),)))
    built(app, "daily", ("visits", "a_totals", "log"), hours_ago=1, day=DAY)
    runs = []
    for day, chosen in ((DAY, []), (DAY, ["visits"]), ("2022-01-02", ["visits"])):
        run = built(app, "daily", ("visits",), day=day)
        app.journal.finish_run(replace(run, facts={"targets": chosen}), "SUCCESS", finished=run.started)
        result: Any = SimpleNamespace(job="daily", run_id=run.run_id)
        taint_left_out(app, result)
        runs.append(run.run_id)
    # Nothing was built on the other day before; the log does not read the visits.
    (stale,) = tainted_targets(app)
    assert (stale.target, [*map(dict, stale.instances)]) == ("a_totals", [{"day": DAY}])
    assert stale.reason == f"run {runs[1]} built visits, which it reads, without it"
    assert stale.commands == (f"lakewright job daily build -t a_totals day={DAY}",)
    app.close()


def test_an_append_that_a_run_of_chosen_targets_left_out_is_emptied_and_built_again(tmp_path: Path) -> None:
    """An append counted as built by the next run in any case: that is one of another day."""
    app = lake(tmp_path)
    app.close()
    text = MODEL.replace("log: {kind: relation, mapping: values", "log: {kind: relation, mapping: visits")
    (tmp_path / "model/model.yml").write_text(text)
    write_deltalake(str(tmp_path / "gold/log"), pa.table({"id": [1]}))
    app = App.open(tmp_path)
    for taint in tuple(app.journal.taints("shop")):
        app.store.write(Write(puts=(taint.place.untainted(),)))
    run = built(app, "daily", ("visits",), day=DAY)
    app.journal.finish_run(replace(run, facts={"targets": ["visits"]}), "SUCCESS", finished=run.started)
    result = cast("Any", SimpleNamespace(job="daily", run_id=run.run_id))
    # An entity that found no slice only had a warning, such as of one that has changed.
    entry = {"name": "visits", "phase": "BUILD", "instance": {"day": DAY}, "reasons": []}
    idle = {**entry, "kind": "entity", "status": "SUCCESS_WITH_ERRORS", "metrics": {"slices": []}}
    app.journal.record_targets(run, {0: idle})
    taint_left_out(app, result)
    assert list(tainted_targets(app)) == []
    app.journal.record_targets(run, {0: {**entry, "status": "SUCCESS"}})
    taint_left_out(app, result)
    (stale,) = tainted_targets(app)
    assert stale.reason.startswith(f"run {run.run_id} built visits, which it reads, without it, and a build")
    assert stale.commands == (
        f"lakewright job daily truncate -t log day={DAY} --yes",
        f"lakewright job daily build day={DAY}",
    )
    app.close()
