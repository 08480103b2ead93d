"""Targets that read a table which has gone back are dirty: issue 15, part 1."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from lakewright.app import App
from lakewright.manifest.journal import Run
from lakewright.usecases.downstream import downstream_taints

PROJECT = "name: shop\nmodules: [model]\nlake: {root_folder: lake}\n"
MODEL = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
relations:
  orders: {kind: entity, entity: orders}
  names: {kind: file, format: json, location: gold/names, partitions: [{name: day, type: date}]}
  others: {kind: values, records: [{id: 1}], columns: {id: long}}
mappings:
  orders: {kind: relation, relation: orders}
  others: {kind: relation, relation: others}
targets:
  orders: {kind: entity, entity: orders}
  names: {kind: relation, mapping: orders, relation: names, partition: {day: $day}}
  others: {kind: blackhole, mapping: others}
jobs:
  daily:
    parameters: [{name: day, type: date, default: "2022-01-01"}]
    targets: [orders, names, others]
"""


def test_each_instance_that_was_built_from_the_table_is_dirty_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "project.yml").write_text(PROJECT)
    (tmp_path / "model/model.yml").write_text(MODEL)
    app = App.open(tmp_path)
    orders = app.project.entity("orders")
    assert downstream_taints(app, orders, "silver.orders went back to version 17") == ()

    for day in ("2022-01-01", "2022-01-02", "2022-01-02"):
        app.begin_run()
        at = datetime(2022, 1, 3, tzinfo=UTC)
        run = Run(app.run_id, "shop", "daily", "BUILD", {"day": day}, at, app.holder)
        saved = app.journal.start_run(run)
        results = [
            {"name": name, "phase": "BUILD", "status": "SUCCESS", "instance": {"day": day}}
            for name in ("orders", "names", "others")
        ]
        app.journal.record_targets(saved, dict(enumerate(results)))
    puts = downstream_taints(app, orders, "silver.orders went back to version 17")
    found = sorted(
        (put.value["place"]["target"], put.value["place"]["parameters"]["day"]) for put in puts if put.value
    )
    assert found == [("names", "2022-01-01"), ("names", "2022-01-02")]
    assert {put.value["reason"] for put in puts if put.value} == {"silver.orders went back to version 17"}
    app.close()
