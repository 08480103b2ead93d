"""After a manifest was lost, instances of gold are known by the partitions that they have left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from tests.unit.usecases.staleness.test_downstream import built, process

from lakewright.app import App
from lakewright.manifest.discovery import DiscoveredSlice
from lakewright.relations.relation import OutputMode
from lakewright.run.outputs import WRITES, recorded_places, target_of, written_by
from lakewright.slices.application import application_of
from lakewright.targets.defaults import TargetDefaults
from lakewright.usecases.staleness.declared_nodes import offline_lake
from lakewright.usecases.staleness.downstream import (
    downstream_taints,
    recovered_words,
    taint_after_processing,
    tainted_words,
)
from lakewright.usecases.staleness.earlier_builds import Arrival, first_arrivals
from lakewright.usecases.staleness.left_partitions import left_instances, own_partitions, recovered_since
from lakewright.usecases.staleness.repeated_appends import added_before

pa: Any = import_module("pyarrow")

MODEL = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
relations:
  orders: {kind: entity, entity: orders}
  sales: {kind: delta, location: lake/gold/sales, partitions: [{name: day, type: date}]}
  files: {kind: file, format: csv, location: lake/gold/files, partitions: [{name: day, type: date}]}
mappings:
  orders: {kind: relation, relation: orders}
  sales: {kind: relation, relation: sales}
targets:
  orders: {kind: entity, entity: orders, slices: "${day}*"}
  sales: {kind: relation, mapping: orders, relation: sales, partition: {day: $day}}
  files: {kind: relation, mapping: orders, relation: files, partition: {day: "${day}"}}
  export:
    kind: copy
    source: {kind: relation, relation: sales, partition: {day: $day}}
    target: {kind: file, format: csv, location: out/$day}
jobs:
  daily: {parameters: [{name: day, type: date}], targets: [orders, sales, files, export]}
"""


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    """A project whose gold was built for three days, of which the history knows one."""
    (tmp_path / "model").mkdir()
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [model]\nlake: {root_folder: lake}\n")
    (tmp_path / "model/model.yml").write_text(MODEL)
    days = pa.table({"id": [1, 2], "day": [date(2026, 1, 1), date(2026, 1, 2)]})
    write_deltalake(tmp_path / "lake/gold/sales", days, partition_by=["day"])
    for day in ("2026-01-03", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / "lake/gold/files" / f"day={day}").mkdir(parents=True)
    app = App.open(tmp_path)
    app.make_store()
    built(app, "daily", ["sales", "files", "export"], day="2026-01-03")
    yield app
    app.close()


def recover(app: App, name: str) -> str:
    """Record a slice as processed, as a run does that finds it in the table's log."""
    entity = app.project.entity("orders")
    item = (Path(app.project.basedir) / "lake/bronze/orders" / name).as_uri()
    application = application_of("shop", entity)
    app.ledger.discover([DiscoveredSlice(item, application, "orders", name, {})])
    content = {"slice": name, "adopted": True}
    app.ledger.recover_processed(
        app.ledger.item(item), application, token=1, content=content, run_id="before"
    )
    return item


def instances(app: App, arrivals: Sequence[Arrival] = ()) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for put in downstream_taints(app, app.project.entity("orders"), "went back", arrivals):
        place = (put.value or {})["place"]
        found.setdefault(place["target"], []).append(place["parameters"]["day"])
    return {target: sorted(days) for target, days in found.items()}


def test_an_undo_makes_each_instance_dirty_that_has_left_a_partition(app: App) -> None:
    """Finding 10: after a lost manifest, gold of all days but one kept the rows of an undone slice."""
    days = ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert instances(app) == {"sales": days, "files": days, "export": days}


def test_a_partition_that_another_job_has_built_is_not_left_by_this_one(app: App) -> None:
    """`status` named this job for it, too: rows of `APPEND` came twice."""
    night = "  night: {environment: [day=2026-01-02], targets: [orders, sales]}\n"
    model = Path(app.project.basedir) / "model/model.yml"
    model.write_text(model.read_text() + night)
    with closing(App.open(app.project.basedir)) as shop:
        job, lake = shop.project.job("night"), offline_lake(shop)
        written = recorded_places(written_by(shop.project, lake, job, "sales", {}))
        assert len(written) == 1
        run = built(shop, "night", ["sales"])
        entry = {"name": "sales", "phase": "BUILD", "status": "SUCCESS", "instance": {}, "reasons": []}
        shop.journal.record_targets(run, {0: {**entry, WRITES: written}})
        daily = shop.project.job("daily")
        left = own_partitions(shop, daily, frozenset({"sales"}))
        assert left == [("sales", {"day": "2026-01-01"})]
        every = left_instances(shop, daily, frozenset({"sales", "export"}))
        assert every == [("export", {"day": "2026-01-01"}), ("sales", {"day": "2026-01-01"})]
        # Its own build of the day would add to what is there.
        added = added_before(shop, "daily")
        made = target_of(shop.project, lake, daily, "sales", {"day": "2026-01-02"})
        assert made is not None
        appending = made[0].model_copy(update={"mode": OutputMode.APPEND})
        defaults = TargetDefaults.of(shop.project.config)
        told = added.added(appending, made[1], {"day": "2026-01-02"}, defaults)
        assert told is not None
        assert f"once more: run {run.run_id} has added them" in told.fault.message


def test_an_undo_of_a_slice_from_before_recovered_ones_makes_each_left_instance_dirty(app: App) -> None:
    """An older manifest was put back: it knows the slice, but not the builds of the runs after it."""
    entity, folder = app.project.entity("orders"), Path(app.project.basedir)
    app.begin_run()
    first = app.ledger.item(process(app, folder, "2026-01-01.csv"))
    arrivals = first_arrivals(app, application_of("shop", entity), [first])
    assert arrivals
    assert instances(app, arrivals) == {}, "all of the history's builds came before"
    process(app, folder, "2026-01-02-a.csv", adopted=True)
    assert instances(app, arrivals) == {}, "a run that died after its commit is in the history"
    recover(app, "2026-01-02.csv")
    days = ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert instances(app, arrivals) == {"sales": days, "files": days, "export": days}
    later = [replace(each, at=app.store.now() + timedelta(hours=1)) for each in arrivals]
    assert recovered_since(app, entity, later[0].at) is None
    assert instances(app, later) == {}


def test_that_builds_from_before_a_lost_manifest_are_unknown_is_told_with_what_to_type(app: App) -> None:
    entity = app.project.entity("orders")
    assert recovered_words(app, entity) is None
    recover(app, "2026-01-01.csv")
    words = recovered_words(app, entity)
    assert words is not None
    assert words.startswith("builds from before ")
    assert words.endswith("build others again with `lakewright job daily build day=<day> --force`")
    assert tainted_words((), words) == words
    puts = downstream_taints(app, entity, "went back")
    assert {(put.value or {})["reason"] for put in puts} == {f"went back; {words}"}
    assert (tainted_words(puts, words) or "").endswith(words)


def test_a_new_slice_makes_the_instance_dirty_that_only_its_partition_tells(app: App) -> None:
    item = recover(app, "2026-01-02-b.csv")
    taint_after_processing(app, app.project.entity("orders"), [item])
    found = sorted((each.place.target, each.place.parameters["day"]) for each in app.journal.taints("shop"))
    # The files have partitions, but none of that day: they were never built in it.
    assert found == [(name, "2026-01-02") for name in ("export", "sales")]


def test_an_instance_that_was_never_built_or_is_emptied_is_not_dirty_because_of_a_new_slice(app: App) -> None:
    """`status` named instances to build again, as a slice had come since they were built, that never were."""
    built(app, "daily", ["sales", "files", "export"], 2, day="2026-01-02")
    emptied = built(app, "daily", [], 1, day="2026-01-02")
    entry = {"name": "export", "phase": "TRUNCATE", "status": "SUCCESS", "reasons": []}
    app.journal.record_targets(emptied, {0: {**entry, "instance": {"day": "2026-01-02"}}})
    for day in ("2026-01-01", "2026-01-02"):
        taint_after_processing(
            app, app.project.entity("orders"), [process(app, Path(app.project.basedir), f"{day}-b.csv")]
        )
    found = sorted((each.place.target, each.place.parameters["day"]) for each in app.journal.taints("shop"))
    assert found == [("files", "2026-01-02"), ("sales", "2026-01-01"), ("sales", "2026-01-02")]


def test_a_partition_of_another_target_of_the_table_is_not_counted_as_left(tmp_path: Path) -> None:
    """A job that had never run was to be built, as another one had filled partitions of the same days."""
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [m.yml]\n")
    (tmp_path / "m.yml").write_text(
        """
relations:
  part: {kind: delta, location: gold/part, PARTS}
  files: {kind: file, format: csv, location: gold/files, PARTS}
mappings:
  one: {kind: sql, sql: "SELECT 1 AS n"}
targets:
  a: {kind: relation, mapping: one, relation: part, partition: {day: $day, src: a}}
  b: {kind: relation, mapping: one, relation: part, partition: {day: $day, src: b}}
  c: {kind: relation, mapping: one, relation: files, partition: {day: $day, src: c}}
  d: {kind: relation, mapping: one, relation: files, partition: {day: $day, src: d}}
jobs:
  daily: {parameters: [{name: day, type: date}], targets: [a, b, c, d]}
""".replace("PARTS", "partitions: [{name: day, type: date}, {name: src, type: string}]")
    )
    rows = pa.table({"n": [1], "day": [date(2026, 1, 1)], "src": ["a"]})
    write_deltalake(tmp_path / "gold/part", rows, partition_by=["day", "src"])
    (tmp_path / "gold/files/day=2026-01-02/src=d").mkdir(parents=True)
    with closing(App.open(tmp_path)) as app:
        found = own_partitions(app, app.project.jobs["daily"], frozenset({"a", "b", "c", "d"}))
    assert sorted(found) == [("a", {"day": "2026-01-01"}), ("d", {"day": "2026-01-02"})]
