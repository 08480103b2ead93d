"""What `status` shows of tables that are gone, or whose place is not known. No Spark."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from deltalake import write_deltalake
from tests.commands import InProcess
from tests.unit.slices.test_recover_from_log import pa
from tests.unit.usecases.slice_times.test_requeued_times import BY_SLICE, processed

from lakewright.app import App
from lakewright.schema.canonical import HASH_VERSION
from lakewright.strategies.table_properties import (
    HASH_VERSION_PROPERTY,
    KEY_PROPERTY,
    STRATEGY_PROPERTY,
)
from lakewright.usecases.entities import read_entity

MODEL = """
connections: {{c: {{settings: {{bronze_path: "${{entity}}", silver_path: "${{entity}}"}}}}}}
entities:
  prices:
    id: 1
    connection: c
    processtype: historic
    columns:
    - {{name: id, fieldroles: [businesskey]}}
    - {{name: day{partition}}}
    - {{name: total, expression: "1"}}
targets: {{prices: {{kind: entity, entity: prices}}}}
jobs: {{daily: {{targets: [prices]}}}}
"""
SOUND = {
    STRATEGY_PROPERTY: "historic",
    HASH_VERSION_PROPERTY: HASH_VERSION,
    KEY_PROPERTY: json.dumps({"id": "bigint"}),
}


def project(folder: Path, *, partition: str = "", **properties: str) -> InProcess:
    """Return a project with the table of an entity that has these properties."""
    (folder / "model").mkdir(parents=True)
    (folder / "project.yml").write_text(
        "name: shop\nmodules: [model]\nlake: {root_folder: '${project.basedir}/lake'}\n"
    )
    (folder / "model" / "m.yml").write_text(MODEL.format(partition=partition))
    rows = pa.table({"id": [1], "day": ["a"], "total": [1]})
    write_deltalake(folder / "lake" / "silver" / "prices", rows)
    _set(folder / "lake" / "silver" / "prices" / "_delta_log" / f"{0:020}.json", {**SOUND, **properties})
    (folder / "lake" / "bronze" / "prices").mkdir(parents=True)
    (folder / "lake" / "bronze" / "prices" / "s1.parquet").write_bytes(b"PAR1")
    return InProcess(folder)


def _set(log: Path, properties: dict[str, str]) -> None:
    """Give a table properties that the library does not know, as Spark would."""
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"] = properties
    log.write_text("\n".join(map(json.dumps, actions)))


def test_status_and_overview_bear_an_entity_whose_place_depends_on_a_job(tmp_path: Path) -> None:
    shop = project(tmp_path)
    model = tmp_path / "model" / "m.yml"
    given = 'after: [loader]\n    settings: {on_bad_rows: quarantine, bronze_path: "prices_$region"}'
    model.write_text(model.read_text().replace("    columns:", f"    {given}\n    columns:"))
    unknown = "bronze_path of entity 'prices': unknown name 'region'"
    done = shop.run("status")
    assert done.code == 0, done.all
    (told,) = shop.json("status")["findings"]
    assert (told["code"], told["params"]) == ("unknown", {"why": unknown})
    found = read_entity(App.open(tmp_path, environ={}), "prices")
    assert (found.note, found.places) == (unknown, {})
    assert shop.run("status", "-D", "region=north").code == 0


def test_a_table_that_is_gone_is_told_and_no_slice_alone_makes_a_new_one(tmp_path: Path) -> None:
    shop = processed(tmp_path, "historic", BY_SLICE)
    shutil.rmtree(tmp_path / "lake/silver/orders")
    (step,) = shop.json("status")["steps"]
    assert (step["reason"]["code"], [each["decision"] for each in step["choices"]]) == (
        "table_gone",
        ["new", "wait"],
    )
    assert (
        "the table is gone, although slices are processed"
        in shop.run("plan", "daily", "build", "day=2024-05-01").out
    )

    (tmp_path / "lake/bronze/orders/2024-05-04.csv").write_text("id\n1\n")
    refused = shop.run("process", "orders")
    assert refused.code == 1
    assert "no table exists there" in refused.err
    assert not (tmp_path / "lake/silver/orders").exists()
