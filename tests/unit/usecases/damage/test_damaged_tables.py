"""`status` names tables that nothing can read, each with the commands that make it again. No Spark."""

from __future__ import annotations

import json
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from tests.commands import InProcess
from tests.documents import checked
from tests.unit.usecases.staleness.test_downstream import built

from lakewright.app import App
from lakewright.usecases.damage.damaged_tables import damaged_tables

pa: Any = import_module("pyarrow")

MODEL = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
relations:
  orders: {kind: entity, entity: orders}
  sales: {kind: delta, location: lake/gold/sales, partitions: [{name: day, type: date}]}
mappings:
  orders: {kind: relation, relation: orders}
targets:
  orders: {kind: entity, entity: orders}
  sales: {kind: relation, mapping: orders, relation: sales, partition: {day: $day}}
jobs:
  daily: {parameters: [{name: day, type: date}], targets: [orders, sales]}
"""


def test_status_names_damaged_tables_of_silver_and_gold_with_the_commands_to_type(tmp_path: Path) -> None:
    """Finding 9: `status` said that only Spark can read the table of silver, and nothing of gold."""
    (tmp_path / "model").mkdir()
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [model]\nlake: {root_folder: lake}\n")
    (tmp_path / "model/model.yml").write_text(MODEL)
    app = App.open(tmp_path)
    app.make_store()
    silver = Path(str(app.project.entity("orders").places(app.project.lake).silver.location))
    gold = tmp_path / "lake/gold/sales"
    for table in (silver, gold):
        write_deltalake(table, pa.table({"id": [1]}))
    for day in ("2026-01-06", "2026-01-07"):
        built(app, "daily", ["orders", "sales"], day=day)
    assert list(damaged_tables(app)) == []
    commit = f"{0:020d}.json"
    for table in (silver, gold):
        (table / "_delta_log" / commit).write_text('{"commitInfo": {')

    first, second = damaged_tables(app)
    assert first.message == f"the table {silver} can't be read: its log file {commit} is damaged"
    assert f"`mv {silver} {silver}.damaged`, then `lakewright rebuild orders --yes`." in str(first.remedy)
    typed = "lakewright job daily build -t sales day=2026-01-06,2026-01-07"
    assert f"`mv {gold} {gold}.damaged`, then `{typed}`." in str(second.remedy)
    app.close()

    shop = InProcess(tmp_path)
    page = shop.run("status").out
    assert page.index("Tables that can't be read 1") < page.index("Tables of targets that can't be read 1")
    assert "only Spark can read" not in page
    assert [each["message"] for each in shop.json("status")["damaged"]] == [first.message, second.message]
    plan = shop.run("plan", "daily", "build", "day=2026-01-07").out
    for table in (silver, gold):
        assert f"warning: the run will fail: the table {table} can't be read: its log file {commit}" in plan
        assert f"move the folder away, `mv {table} {table}.damaged`, and make the table again" in plan


@pytest.mark.parametrize("above", ["", "folder above"])
def test_a_file_in_place_of_a_tables_folder_is_told_with_what_to_do(tmp_path: Path, above: str) -> None:
    """The table counted as one that does not exist, and the run failed with a text of Spark or the disk."""
    (tmp_path / "model").mkdir()
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [model]\nlake: {root_folder: lake}\n")
    (tmp_path / "model/model.yml").write_text(MODEL)
    with closing(App.open(tmp_path)) as app:
        app.make_store()
        silver = Path(str(app.project.entity("orders").places(app.project.lake).silver.location))
        built(app, "daily", ["orders", "sales"], day="2026-01-06")
    gold = tmp_path / "lake/gold/sales"
    files = [table.parent if above else table for table in (silver, gold)]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    shop = InProcess(tmp_path)
    found = checked(shop.json("status"))
    assert found["lost"] == []
    for table, file, fault in zip((silver, gold), files, found["damaged"], strict=True):
        which = f"the folder of the table {table}" if above else "the table's folder"
        message = f"a file stands at {file}, where {which} belongs"
        assert fault["message"] == message
        assert f"Move the file away: `mv {file} {file}.moved`." in fault["remedy"]
        plan = " ".join(shop.run("plan", "daily", "build", "day=2026-01-07").out.split())
        assert f"warning: the run will fail: {message}" in plan
        assert f"do: {fault['remedy']}" in plan
        assert message in " ".join(shop.run("doctor", "orders").all.split()) or table == gold


def test_a_file_that_a_target_writes_is_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [model]\nlake: {root_folder: lake}\n")
    model = MODEL.replace(
        "kind: delta, location: lake/gold/sales", "kind: file, format: csv, location: lake/sales"
    )
    (tmp_path / "model/model.yml").write_text(model)
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake/sales").touch()
    with closing(App.open(tmp_path)) as app:
        app.make_store()
        assert list(damaged_tables(app)) == []


def test_status_names_tables_that_lack_data_files(tmp_path: Path) -> None:
    """It was calm, and the table of gold counted as filled; the run that read it named no way out."""
    (tmp_path / "model").mkdir()
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [model]\nlake: {root_folder: my lake}\n")
    (tmp_path / "model/model.yml").write_text(MODEL.replace("lake/gold", "my lake/gold"))
    app = App.open(tmp_path)
    app.make_store()
    silver = Path(str(app.project.entity("orders").places(app.project.lake).silver.location))
    gold = tmp_path / "my lake/gold/sales"
    for table in (silver, gold):
        write_deltalake(table, pa.table({"id": [1, 2], "d a": ["x%y z", "ü:1"]}), partition_by=["d a"])
    built(app, "daily", ["orders", "sales"], day="2026-01-06")
    assert list(damaged_tables(app)) == []
    for table in (silver, gold):
        next(table.rglob("*.parquet")).unlink()

    first, second = damaged_tables(app)
    app.close()

    assert first.message.startswith(
        f"the table {silver} can't be read as a whole: it lacks 1 data file, such as "
    )
    assert first.details["commands"] == ["lakewright rebuild orders --yes"]
    assert "Without one: `lakewright rebuild orders --yes`." in str(first.remedy)
    assert second.details["commands"] == [
        f"mv '{gold}' '{gold}.damaged'",
        "lakewright job daily build -t sales day=2026-01-06",
    ]


def test_discover_goes_on_after_a_damaged_table_and_tells_each(tmp_path: Path) -> None:
    """It ended at the first one, before it had looked at the entities after it."""
    (tmp_path / "model").mkdir()
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [model]\nlake: {root_folder: lake}\n")
    entity = "{id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}"
    others = "".join(f"  {name}: {entity.replace('1', str(n))}\n" for n, name in enumerate("abc", 2))
    (tmp_path / "model/model.yml").write_text(MODEL.replace("relations:\n", f"{others}relations:\n"))
    app = App.open(tmp_path)
    app.make_store()
    for name in "abc":
        places = app.project.entity(name).places(app.project.lake)
        Path(places.bronze).mkdir(parents=True)
        (Path(places.bronze) / "1.csv").write_text("id\n1\n")
        if name != "c":
            write_deltalake(str(places.silver.location), pa.table({"id": [1]}))
            log = Path(str(places.silver.location)) / "_delta_log/00000000000000000000.json"
            log.write_text(log.read_text()[:40])
    app.close()

    done = InProcess(tmp_path).run("manifest", "discover", "-o", "json")
    assert done.code == 1
    document = json.loads(done.out)
    assert sorted(each["entity"] for each in document["new"]) == ["a", "b", "c"]
    assert [each["entity"] for each in document["unreadable"]] == ["a", "b"]
    told = InProcess(tmp_path).run("manifest", "discover")
    assert told.code == 1
    assert "new 0: none" in told.out
    for name in "ab":
        assert f"`lakewright rebuild {name} --yes`" in told.err
