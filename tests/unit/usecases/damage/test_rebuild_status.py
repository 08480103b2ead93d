"""`status` names the tables that only a rebuild makes as they are declared. No Spark."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from tests.commands import InProcess
from tests.silver import sign_last_commit
from tests.unit.slices.test_recover_from_log import pa
from tests.unit.usecases.slice_times.test_requeued_times import BY_SLICE, processed

from lakewright.app import App
from lakewright.errors import StorageUnavailable
from lakewright.lake.delta_log import ABSENT, TableState
from lakewright.manifest.item import Item
from lakewright.schema.canonical import HASH_VERSION
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.lake import LakeSettings
from lakewright.spec.models.places import Address, Places
from lakewright.strategies.table_properties import (
    EXPRESSIONS_PROPERTY,
    HASH_VERSION_PROPERTY,
    HISTORY_PROPERTY,
    KEY_PROPERTY,
    STRATEGY_PROPERTY,
    declared_properties,
)
from lakewright.usecases.damage import rebuild_status
from lakewright.usecases.entity_overview import read_entity

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


CASES: dict[str, tuple[dict[str, Any], str, bool]] = {
    "the business key": ({KEY_PROPERTY: '{"nr": "bigint"}'}, "the table's rows are keyed by nr", True),
    "the strategy": ({STRATEGY_PROPERTY: "merge"}, "the table holds rows of the strategy merge", True),
    "the hash": ({HASH_VERSION_PROPERTY: "0"}, "the table's hashes are of version 0", True),
    "the partitions": (
        {"partition": ", fieldroles: [partition]"},
        "the table is partitioned by no column, the entity by day",
        True,
    ),
    "a narrower type": (
        {"partition": ", datatype: integer"},
        "column 'day' is declared as int, but the table has string and keeps it: a value of a new slice",
        False,
    ),
    "an expression": (
        {EXPRESSIONS_PROPERTY: '{"total": "0"}'},
        "the expression of total has changed since the table was built",
        False,
    ),
    "the history": (
        {HISTORY_PROPERTY: '{"folder": "exports", "valid_from": "d"}'},
        "the table holds versions of a history_from that is no longer declared",
        False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_status_gives_the_reason_of_the_plan_with_the_command(tmp_path: Path, name: str) -> None:
    changed, reason, refuses = CASES[name]
    shop = project(tmp_path, **changed)
    (due,) = json.loads(shop.run("status", "-o", "json").out)["rebuilds"]
    assert due["reason"].startswith(reason)
    expected = {"entity": "prices", "refuses_slices": refuses, "do": "lakewright rebuild prices"}
    assert {key: value for key, value in due.items() if key != "reason"} == expected
    page = " ".join(shop.run("status").out.split())
    assert f"Tables that need a rebuild 1 prices: {reason}" in page
    assert ("no slice is processed until then" in page) is refuses
    assert "Nothing is running" not in page
    assert reason in " ".join(shop.run("plan", "daily", "build").all.split())


def test_status_knows_the_entries_of_jobs_and_what_an_option_gave(tmp_path: Path) -> None:
    """A table is as declared if a job of its entity would have made it so, and `-D` counts as it was then."""
    model = MODEL.replace('expression: "1"', 'expression: "$rate"')
    for name, stored, of_job, do in (
        ("project", "0.1", "", None),
        ("job", "0.2", "'rate=0.2'", None),
        ("begun", "0.1", "'rate=0.2'", "lakewright rebuild prices -D rate=0.2"),
        ("edited", "0.2", "'rate=0.3'", "lakewright rebuild prices -D rate=0.3"),
        ("gone", "0.2", "", "lakewright rebuild prices"),
    ):
        shop = project(tmp_path / name)
        file = tmp_path / name / "model" / "m.yml"
        jobs = f"targets: [prices], environment: [{of_job}]}}"
        text = model.format(partition="").replace("targets: [prices]}", jobs)
        file.write_text(f"environment: ['rate={stored}']\n{text}")
        built = App.open(tmp_path / name, environ={}).project.entity("prices")
        log = tmp_path / name / "lake" / "silver" / "prices" / "_delta_log" / f"{0:020}.json"
        _set(log, {**SOUND, **declared_properties(built)})
        file.write_text(f"environment: ['rate=0.1']\n{text}")
        found = json.loads(shop.run("status", "-o", "json").out)["rebuilds"]
        assert [each["do"] for each in found] == ([] if do is None else [do]), name

    shop = project(tmp_path / "option")
    file = tmp_path / "option" / "model" / "m.yml"
    file.write_text("environment: ['rate=0.1']\n" + model.format(partition=""))
    built = App.open(tmp_path / "option", environ={}, definitions={"rate": "7"}).project.entity("prices")
    log = tmp_path / "option" / "lake" / "silver" / "prices" / "_delta_log" / f"{0:020}.json"
    _set(log, {**SOUND, **declared_properties(built)})
    assert json.loads(shop.run("status", "-o", "json").out)["rebuilds"] == []
    told = " ".join(shop.run("plan", "daily", "build").all.split())
    assert "rate, which the expression of total uses, has another value than when the table was built" in told
    assert "has another value" not in shop.run("plan", "daily", "build", "-D", "rate=7").all


def test_status_says_which_tables_it_did_not_look_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark is not started; a store that does not answer is waited for once, for all its tables."""
    text = MODEL.format(partition="").replace(
        "targets: {",
        "\n".join(
            f"  {name}: {{id: {name}, connection: c, processtype: merge, settings: {{{place}}},\n"
            "    columns: [{name: id, fieldroles: [businesskey]}]}"
            for name, place in (
                ("named", "silver_table: db.named"),
                ("away", "silver_table: db.away"),
                ("due", "silver_table: db.due"),
                *((f"slow{n}", f"silver_table: db.slow{n}") for n in range(12)),
                ("regional", "silver_path: '$region/x'"),
            )
        )
        + "\ntargets: {",
    )
    shop = project(tmp_path)
    (tmp_path / "model" / "m.yml").write_text(text)
    released = Event()

    def look(_: object, address: Address) -> TableState | None:
        name = (address.location or "").rpartition("/")[2]
        if name.startswith("slow"):
            released.wait(20)
        if name == "away":
            raise StorageUnavailable("s3://away/due can't be read: no credentials were found")
        properties = {**SOUND, HASH_VERSION_PROPERTY: "0"} if name == "due" else {}
        return TableState(True, columns=(), partition_columns=(), properties=properties, is_empty=False)

    def places(entity: Entity, lake: LakeSettings) -> Places:
        found = real(entity, lake)
        name = entity.name
        is_far = name in ("away", "due") or name.startswith("slow")
        return replace(found, silver=Address(location=f"s3://lake/{name}")) if is_far else found

    app, real = App.open(tmp_path, environ={}), Entity.places
    monkeypatch.setattr(Entity, "places", places)
    monkeypatch.setattr(
        rebuild_status, "observe_without_spark", lambda *a: look(*a) if a[1].location else None
    )
    monkeypatch.setattr(rebuild_status, "commits_of_others", lambda *_: ())
    monkeypatch.setattr("lakewright.slices.chain.last_commit_number", lambda *_: None)
    begun = monotonic()
    found = rebuild_status.due_rebuilds(app, 0.5)
    assert monotonic() - begun < 10
    released.set()
    assert [(each.entity, each.refuses_slices) for each in found.due] == [("due", True)]
    why = {each.entity: each.why for each in found.unseen}
    assert why.pop("named").startswith("only Spark can read the table")
    assert why.pop("away") == "s3://away/due can't be read: no credentials were found"
    assert "region" in why.pop("regional")
    assert set(why) == {f"slow{n}" for n in range(12)}
    assert set(why.values()) == {"reading the tables in object stores takes longer than 0.5 s"}

    monkeypatch.undo()
    (tmp_path / "model" / "m.yml").write_text(text.replace("$region", "north"))
    told = shop.run("status")
    page = " ".join(told.out.split())
    assert (
        "Not looked at for a rebuild: named, away, due and 12 more: only Spark can read the table, which "
        "`lakewright plan` and a run do"
    ) in page
    assert "Tables that need a rebuild" not in page
    unseen = json.loads(shop.run("status", "-o", "json").out)["unseen"]
    assert "named" in [each["entity"] for each in unseen]


def test_status_and_overview_bear_an_entity_whose_place_depends_on_a_job(tmp_path: Path) -> None:
    shop = project(tmp_path)
    model = tmp_path / "model" / "m.yml"
    given = 'after: [loader]\n    settings: {on_bad_rows: quarantine, bronze_path: "prices_$region"}'
    model.write_text(model.read_text().replace("    columns:", f"    {given}\n    columns:"))
    unknown = "bronze_path of entity 'prices': unknown name 'region'"
    done = shop.run("status")
    assert done.code == 0, done.all
    assert f"Not looked at for a rebuild: prices: {unknown}" in " ".join(done.out.split())
    found = read_entity(App.open(tmp_path, environ={}), "prices")
    assert (found.note, found.places) == (unknown, {})
    assert shop.run("status", "-D", "region=north").code == 0


def test_a_table_as_it_is_declared_is_no_news_and_neither_is_one_of_another_program(tmp_path: Path) -> None:
    shop = project(tmp_path)
    assert json.loads(shop.run("status", "-o", "json").out)["rebuilds"] == []
    assert "need a rebuild" not in shop.run("status").out
    _set(tmp_path / "lake" / "silver" / "prices" / "_delta_log" / f"{0:020}.json", {})
    assert json.loads(shop.run("status", "-o", "json").out)["rebuilds"] == []


def test_a_table_that_is_gone_is_told_and_no_slice_alone_makes_a_new_one(tmp_path: Path) -> None:
    shop = processed(tmp_path, "historic", BY_SLICE)
    shutil.rmtree(tmp_path / "lake/silver/orders")
    told = " ".join(shop.run("status").out.split())
    assert "such as 2024-05-01.csv as processed into" in told
    said = "no slice is processed until then do: `lakewright rebuild orders`"
    assert f"no table exists there; if it was moved, bring it back instead of rebuilding it {said}" in told
    assert (
        "the table is gone, although slices are processed"
        in shop.run("plan", "daily", "build", "day=2024-05-01").out
    )

    (tmp_path / "lake/bronze/orders/2024-05-04.csv").write_text("id\n1\n")
    refused = shop.run("process", "orders")
    assert refused.code == 1
    assert "no table exists there" in refused.err
    assert not (tmp_path / "lake/silver/orders").exists()


def test_a_table_whose_log_alone_is_gone_is_to_be_moved_away_before_its_rebuild(tmp_path: Path) -> None:
    shop = processed(tmp_path, "historic", BY_SLICE)
    folder = tmp_path / "lake/silver/orders"
    shutil.rmtree(folder / "_delta_log")
    status = json.loads(shop.run("status", "-o", "json").out)
    (told,) = status["damaged"]
    assert "has files of rows, but no Delta log" in told["message"]
    assert f"`mv {folder} {folder}.damaged`, then `lakewright rebuild orders --yes`" in told["remedy"]
    assert status["rebuilds"] == []


def test_a_table_whose_rows_another_program_changed_is_told_once(tmp_path: Path) -> None:
    """Before a run tells of it, `status` does; then the run's warning stands for it."""
    shop = processed(tmp_path, "historic", BY_SLICE)
    silver = tmp_path / "lake/silver/orders"
    sign_last_commit(silver)
    assert json.loads(shop.run("status", "-o", "json").out)["rows_changed"] == []
    DeltaTable(silver).delete("id = 1")

    told = " ".join(shop.run("status").out.split())

    assert "Tables that another program has changed 1" in told
    assert "rows of orders were changed by another program since Lakewright's last commit: version 2" in told
    assert "`lakewright rebuild orders --over-foreign`" in told
    app = App.open(tmp_path, environ={})
    rebuilds = rebuild_status.due_rebuilds(app)
    (fault,) = rebuilds.rows_changed
    assert rebuilds.rows_changed_beside({fault.message}) == ()


def test_a_full_table_that_another_program_made_anew_is_told_until_it_is_restored(tmp_path: Path) -> None:
    shop = processed(tmp_path, "full", BY_SLICE)
    silver = tmp_path / "lake/silver/orders"
    sign_last_commit(silver)
    DeltaTable.create(silver, schema=pa.schema([("id", pa.int64())]), mode="overwrite")
    assert "rows of orders were changed by another program" in " ".join(shop.run("status").out.split())
    DeltaTable(silver).restore(DeltaTable(silver).version() - 1)
    assert shop.run("status").out.startswith("Nothing is running")


def test_the_table_of_a_renamed_entity_is_told_with_its_former_name(tmp_path: Path) -> None:
    """Only that nobody declares the former one was told, and to process its slices again."""
    shop = processed(tmp_path, "historic", BY_SLICE)
    sign_last_commit(tmp_path / "lake/silver/orders", "lakewright/shop/orders:orders")
    model = tmp_path / "m.yml"
    text = model.read_text().replace("  orders:\n    id: 1", "  sales:\n    id: 1")
    text = text.replace("entity: orders", "entity: sales").replace('"${entity}"', "orders")
    model.write_text(text)
    page = " ".join(shop.run("status").out.split())
    assert "Tables of a project or an entity with another name 1" in page
    assert (
        "orders holds slices of lakewright/shop/orders:orders, and none of lakewright/shop/sales:sales"
        in page
    )


def test_a_table_that_another_program_made_anew_is_told_with_a_rebuild_that_works(tmp_path: Path) -> None:
    """As by CREATE OR REPLACE TABLE: its log goes on, but Lakewright's properties are gone."""
    shop = processed(tmp_path, "historic", BY_SLICE)
    silver = tmp_path / "lake/silver/orders"
    sign_last_commit(silver)
    write_deltalake(silver, pa.table({"id": [7]}), mode="overwrite", schema_mode="overwrite")
    _replace_properties(silver / "_delta_log" / f"{2:020}.json")

    status = json.loads(shop.run("status", "-o", "json").out)

    (due,) = status["rebuilds"]
    assert due["reason"].startswith("the table holds rows that Lakewright did not write; historic cannot")
    assert (due["refuses_slices"], due["do"]) == (True, "lakewright rebuild orders --over-foreign")
    assert status["rows_changed"] == []
    (tmp_path / "lake/bronze/orders/2024-05-04.csv").write_text("id\n1\n")
    told = " ".join(shop.run("plan", "daily", "build", "day=2024-05-04").all.split())
    assert "again from its slices with `lakewright rebuild orders --over-foreign`" in told
    assert "No slice is processed into the rows as they are now" in told
    assert "Slices go on with" not in told

    model = tmp_path / "m.yml"
    model.write_text(model.read_text().replace("historic", "full"))
    assert json.loads(shop.run("status", "-o", "json").out)["rebuilds"] == []
    assert "Slices go on with" in " ".join(shop.run("plan", "daily", "build", "day=2024-05-04").all.split())


def _replace_properties(log: Path) -> None:
    """Give a commit the metadata of a table without properties."""
    first = log.parent / f"{0:020}.json"
    actions = [json.loads(line) for line in (*first.read_text().splitlines(), *log.read_text().splitlines())]
    (metadata, *_) = [each["metaData"] for each in reversed(actions) if "metaData" in each]
    kept = [line for line in log.read_text().splitlines() if "metaData" not in json.loads(line)]
    log.write_text("\n".join([*kept, json.dumps({"metaData": {**metadata, "configuration": {}}})]))


def test_a_table_that_a_run_makes_while_status_looks_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run makes the table and records its first slice after the first look at the table."""
    project(tmp_path)
    app = App.open(tmp_path, environ={})
    made = TableState(True, columns=(), partition_columns=(), properties=SOUND, is_empty=False)
    item = Item("file:///bronze/prices/d1.csv")
    monkeypatch.setattr("lakewright.slices.chain.first_processed", lambda *_: item)
    looks = iter((ABSENT, made, ABSENT, ABSENT))
    monkeypatch.setattr(rebuild_status, "observe_without_spark", lambda *_: next(looks))
    assert not any("no table exists" in each.reason for each in rebuild_status.due_rebuilds(app).due)
    (lost,) = rebuild_status.due_rebuilds(app).due
    assert lost.refuses_slices
    assert "counts slices such as d1.csv as processed" in lost.reason
    assert list(looks) == []


def test_a_table_that_a_run_makes_while_status_looks_is_not_that_of_another_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path)
    app = App.open(tmp_path, environ={})
    ours = TableState(True, columns=(), partition_columns=(), properties=SOUND, is_empty=False)
    theirs = replace(ours, properties={})
    item = Item("file:///bronze/prices/d1.csv")
    monkeypatch.setattr("lakewright.slices.chain.first_processed", lambda *_: item)
    looks = iter((theirs, ours, theirs, theirs))
    monkeypatch.setattr(rebuild_status, "observe_without_spark", lambda *_: next(looks))
    assert not any("did not write" in each.reason for each in rebuild_status.due_rebuilds(app).due)
    (foreign,) = rebuild_status.due_rebuilds(app).due
    assert "rows that Lakewright did not write" in foreign.reason
    assert list(looks) == []
