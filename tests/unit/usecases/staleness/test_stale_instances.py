"""Targets that were built before a slice came are dirty if the slice came outside of their run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.usecases.staleness.test_downstream import built, process

from lakewright.app import App
from lakewright.lake.paths import local_path
from lakewright.manifest.journal import TargetPhase
from lakewright.manifest.store import Write
from lakewright.plan.phase import Phase
from lakewright.run.request import JobRequest
from lakewright.usecases.plan_job import plan_job
from lakewright.usecases.staleness.downstream import arrival_answered, taint_after_processing
from lakewright.usecases.staleness.readers import dependents

MODEL = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
relations:
  orders: {kind: entity, entity: orders}
  days: {kind: file, format: json, location: gold/days, partitions: [{name: day, type: date}]}
  months: {kind: file, format: json, location: gold/months, partitions: [{name: month, type: date}]}
  places: {kind: file, format: json, location: gold/places, partitions: [{name: place, type: string}]}
  whole: {kind: file, format: json, location: gold/whole}
  total: {kind: file, format: json, location: gold/total}
  always: {kind: file, format: json, location: gold/always}
mappings:
  orders: {kind: relation, relation: orders}
targets:
  orders: {kind: entity, entity: orders, slices: "${day}*"}
  until: {kind: entity, entity: orders, until: "${day}"}
  all: {kind: entity, entity: orders}
  days: {kind: relation, mapping: orders, relation: days, partition: {day: $day}}
  months: {kind: relation, mapping: orders, relation: months, partition: {month: $month}}
  places: {kind: relation, mapping: orders, relation: places, partition: {place: $place}}
  whole: {kind: relation, mapping: orders, relation: whole}
  total: {kind: relation, mapping: orders, relation: total}
  always: {kind: relation, mapping: orders, relation: always, buildPolicy: ALWAYS}
jobs:
  early: {parameters: [{name: day, type: date}], targets: [orders]}
  daily: {parameters: [{name: day, type: date}], targets: [orders, days]}
  later: {parameters: [{name: day, type: date}], targets: [until, days]}
  gold: {parameters: [{name: day, type: date}], targets: [days, whole]}
  monthly: {parameters: [{name: month, type: date, granularity: P1M}], targets: [all, months]}
  regional: {parameters: [{name: place}], targets: [all, places]}
  nightly: {targets: [all, total, always]}
"""


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    (tmp_path / "model").mkdir()
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [model]\nlake: {root_folder: lake}\n")
    (tmp_path / "model/model.yml").write_text(MODEL)
    app = App.open(tmp_path)
    app.make_store()
    yield app
    app.close()


def tainted(app: App, name: str, run_id: str | None = None) -> list[tuple[str, str]]:
    """Process a slice and return the targets that it makes dirty, with the value of their parameter."""
    item = process(app, Path(app.project.basedir), name)
    assert taint_after_processing(app, app.project.entity("orders"), [item], run_id) is None
    found = (each.place for each in app.journal.taints("shop"))
    return sorted((each.target, next(iter(each.parameters.values()), "")) for each in found)


@pytest.mark.parametrize(
    ("job", "target", "values", "dirty"),
    [
        ("daily", "days", ("2026-01-06", "2026-01-07", "2026-01-08"), ["2026-01-07"]),
        ("later", "days", ("2026-01-06", "2026-01-07", "2026-01-08"), ["2026-01-07", "2026-01-08"]),
        ("gold", "days", ("2026-01-06", "2026-01-07"), ["2026-01-07"]),
        ("gold", "days", ("2026-01-05", "2026-01-06"), []),  # the slice is for a day that was not run yet
        ("monthly", "months", ("2025-12-01", "2026-01-01"), ["2026-01-01"]),
        ("regional", "places", ("north", "south"), ["north", "south"]),
        ("regional", "places", ("b", "south"), ["b"]),  # the name has the one, so not the other
    ],
)
def test_an_instance_that_may_have_read_the_slice_is_dirty(
    app: App, job: str, target: str, values: tuple[str, ...], dirty: list[str]
) -> None:
    (parameter,) = app.project.jobs[job].parameters
    for value in values:
        built(app, job, [target], 1, **{parameter.name: value})
    assert tainted(app, "2026-01-07-b.csv") == [(target, each) for each in dirty]


def test_what_has_read_the_slice_is_clean(app: App) -> None:
    item = process(app, Path(app.project.basedir), "2026-01-07.csv")
    run = built(app, "daily", ["orders", "days"], 1, day="2026-01-07")
    built(app, "nightly", ["total"])
    taint_after_processing(app, app.project.entity("orders"), [item], run.run_id)
    assert list(app.journal.taints("shop")) == []


def test_what_a_run_of_another_job_has_built_with_the_slice_is_clean(app: App) -> None:
    """A second job with the same target, never run, called each day stale that the first had just built."""
    (Path(app.project.basedir) / "gold/days/day=2026-01-07").mkdir(parents=True)
    item = process(app, Path(app.project.basedir), "2026-01-07.csv")
    run = built(app, "daily", ["orders", "days"], 1, day="2026-01-07")
    taint_after_processing(app, app.project.entity("orders"), [item], run.run_id)
    assert list(app.journal.taints("shop")) == []
    assert tainted(app, "2026-01-07-b.csv") == [("days", "2026-01-07")]


def test_a_table_that_each_instance_writes_as_a_whole_is_dirty_whatever_the_slice_is_called(
    app: App,
) -> None:
    for day in ("2026-01-06", "2026-01-07"):
        built(app, "gold", ["whole"], 1, day=day)
    assert tainted(app, "0001.csv") == [("whole", "2026-01-07")]


def test_a_target_that_every_run_of_its_job_builds_is_not_told(app: App) -> None:
    built(app, "nightly", ["total", "always"], 1)
    assert tainted(app, "0001.csv") == [("total", "")]


def test_what_the_run_left_undone_stays_told_with_the_run(app: App) -> None:
    built(app, "daily", ["days"], 1, day="2026-01-07")
    run = built(app, "daily", ["orders"], day="2026-01-07")
    place = TargetPhase("shop", "days", "BUILD", {"day": "2026-01-07"})
    app.store.write(Write(puts=(place.tainted("was left undone", run.run_id),)))
    assert tainted(app, "2026-01-07.csv", run.run_id) == [("days", "2026-01-07")]
    (taint,) = app.journal.taints("shop")
    assert taint.run_id == run.run_id


def test_a_plan_names_the_job_that_builds_most_from_the_table(app: App, tmp_path: Path) -> None:
    """It named the job that is declared first, after which gold of another one was stale."""
    app.close()
    kept = [line for line in MODEL.splitlines() if "all]" not in line and "[all" not in line]
    text = "\n".join(line for line in kept if not line.startswith("  all:"))
    (tmp_path / "model/model.yml").write_text(text)
    app = App.open(tmp_path)
    orders = app.project.entity("orders")
    assert dependents(app, "orders") == {"early": 0, "daily": 1, "later": 1, "gold": 2}
    folder = Path(str(local_path(orders.places(app.project.lake).bronze)))
    folder.mkdir(parents=True)
    (folder / "2026-01-07.csv").write_text("id\n1\n")
    typed = "lakewright job daily build day=2026-01-07"
    plan = plan_job(app, JobRequest("early", Phase.BUILD, ("day=2026-01-05",)))
    told = [reason for step in plan.steps() for reason in step.reasons if "2026-01-07.csv" in reason]
    assert told
    assert all(f"`{typed}`" in reason for reason in told)
    app.close()


def test_an_undo_takes_back_what_the_slice_alone_made_dirty(app: App) -> None:
    """Targets of other jobs stayed to be built again, although the table is as they have read it."""
    entity = app.project.entity("orders")
    built(app, "gold", ["days"], 1, day="2026-01-07")
    assert tainted(app, "2026-01-07-b.csv") == [("days", "2026-01-07")]
    (place,) = (each.place for each in app.journal.taints("shop"))
    item = app.ledger.item((Path(app.project.basedir) / "lake/orders/2026-01-07-b.csv").as_uri())
    assert [put.key for put in arrival_answered(app, entity, item)] == [place.key]
    # What came later keeps the first reason.
    tainted(app, "2026-01-07-c.csv")
    assert arrival_answered(app, entity, item) == ()
