"""The Python API on a session that is there already, as notebooks have it (D2)."""

from __future__ import annotations

import json
import logging
import shutil
from datetime import UTC, date, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas
import polars
import pytest

from lakewright import Project, RunEvent
from lakewright.errors import (
    ItemLocked,
    LakewrightError,
    LakewrightWarning,
    RunFailed,
    SpecError,
    TargetError,
    UsageError,
)
from lakewright.slices.application import application_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = """
name: shop
modules: [model]
lake: {root_folder: "${project.basedir}/lake"}
"""
ENTITIES = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}
entities:
  orders:
    id: 1
    connection: shop
    processtype: merge
    settings: {bronze_format: json}
    columns: [{name: id, fieldroles: [businesskey]}]
  texts:
    id: 2
    connection: shop
    processtype: full
    settings: {format: {kind: csv, separator: ";", quote: "'", escape: "!"}}
    columns: [{name: id, datatype: int, fieldroles: [businesskey]}]
  latin:
    id: 3
    connection: shop
    processtype: full
    settings: {format: {kind: csv, encoding: ISO-8859-1}}
  exact:
    id: 4
    connection: shop
    processtype: full
    settings: {bronze_format: json}
    columns: [{name: large, datatype: "decimal(22,2)"}]
relations:
  days: {kind: file, format: json, location: "${project.basedir}/days", partitions: [{name: day, type: date}]}
targets:
  orders: {kind: entity, entity: orders}
  texts: {kind: entity, entity: texts}
jobs:
  daily: {parameters: [{name: day, type: date, default: "2024-05-01"}], targets: [orders, texts]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project.yml").write_text(MODEL)
    (tmp_path / "model").mkdir()
    (tmp_path / "model/shop.yml").write_text(ENTITIES)
    return tmp_path


@pytest.fixture
def users(spark: SparkSession) -> SparkSession:
    """A user's session, with settings and a view of its own."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.range(3).createOrReplaceTempView("mine")
    return session


def test_a_notebook_keeps_its_session_through_landing_failing_and_reading(
    folder: Path, users: SparkSession, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lakewright")
    settings = dict(users.conf.getAll)
    shop = Project.load(folder, spark=users)
    assert repr(shop) == f"<Project shop in {folder}>"
    assert (shop.spark, list(shop.entities), list(shop.jobs)) == (
        users,
        ["orders", "texts", "latin", "exact"],
        ["daily"],
    )
    orders = shop.entity("orders")
    assert (orders.strategy, orders.business_keys) == ("merge", ("id",))

    orders.land(users.sql("SELECT id, 1 / 0 AS ratio, 'a' AS name FROM mine"), "1")
    events: list[RunEvent] = []
    first = shop.run("daily", "build", targets="orders", on_event=events.append).check()
    assert [(each.kind, each.phase, each.target) for each in events] == [
        ("started", "VALIDATE", "orders"),
        ("finished", "VALIDATE", "orders"),
        ("finished", "CREATE", "orders"),
        ("started", "BUILD", "orders"),
        ("slice", "BUILD", "orders"),
        ("finished", "BUILD", "orders"),
    ]
    assert events[4].slice is not None
    assert events[4].slice.result is not None
    assert events[4].slice.result.summary.inserted == 3
    assert any("orders: slice 1 processed by merge" in message for message in caplog.messages)

    # A slice with a key that is there twice fails; the session lives on, and nothing is printed.
    capfd.readouterr()
    orders.land(users.sql("SELECT 1 AS id, 2 AS ratio, 'b' AS name FROM mine"), "2")
    failed = shop.run("daily", "build", targets="orders")
    assert not failed.is_success
    assert failed.run_id != first.run_id
    with pytest.raises(RunFailed, match=r"orders in BUILD: .*business key"):
        failed.check()
    assert capfd.readouterr() == ("", "")
    status = shop.status()
    assert [(step.reason.code, step.subject.text) for step in status.plan.steps] == [
        ("failed_slice", "orders/2")
    ]
    assert "<td>Needs you</td><td>orders/2</td><td>2 failed: " in status._repr_html_()
    runs = shop.history(job="daily")
    assert [(run.run_id, run.status) for run in runs] == [
        (failed.run_id, "FAILED"),
        (first.run_id, "SUCCESS"),
    ]
    assert first.run_id in runs._repr_html_()
    assert "orders" in failed._repr_html_()
    assert (repr(failed), repr(status)) == (
        f"<RunResult daily build FAILED, run {failed.run_id}>",
        "<ProjectStatus needs_you=1>",
    )

    # Delivered again and resolved, it is processed.
    orders.land(users.sql("SELECT id, 3 AS ratio, 'c' AS name FROM mine"), "2", replace=True)
    orders.resolve("2", reason="delivered again")
    shop.run("daily", "build", targets="orders").check()
    with pytest.raises(UsageError, match="processed"):
        orders.requeue("1")
    assert [each.rpartition("/")[2] for each in orders.requeue("1", cascade=True)] == ["2"]
    with pytest.warns(LakewrightWarning):
        orders.skip("1")
    assert [done.name for done in orders.process().slices] == ["2"]

    frame = orders.read(current=True)
    assert frame.sparkSession is users
    assert ("silver", "orders") in shop.sql("SHOW TABLES").collect()
    frame.createOrReplaceTempView("found")
    assert users.sql("SELECT count(*) FROM found JOIN mine USING (id)").first() == (3,)
    shop.close()
    assert dict(users.conf.getAll) == settings
    assert users.sql("SELECT 1 / 0, current_timezone()").first() == (None, "America/New_York")
    assert users.table("mine").count() == 3


def test_a_landed_slice_is_whole_and_reads_back_as_it_was(folder: Path, users: SparkSession) -> None:
    shop = Project.load(folder, spark=users)
    texts, bronze = shop.entity("texts"), folder / "lake/bronze/texts"
    rows = [(1, " a; 'b!' "), (2, "line\nbreak"), (3, None), (4, "\\")]
    landed = texts.land(users.createDataFrame(rows, "id int, text string").coalesce(1), "day 1")
    assert (landed.name, landed.files, landed.is_replaced) == ("day 1", 1, False)
    assert [path.name for path in bronze.iterdir()] == ["day 1"]
    assert not (bronze / "day 1/_SUCCESS").exists()
    shop.run("daily", "build", targets="texts").check()
    found = texts.read().select("id", "text").orderBy("id").collect()
    assert [tuple(row) for row in found] == rows

    # With a marked folder beside it, a slice without the mark would wait.
    (bronze / "day 2").mkdir()
    (bronze / "day 2/_SUCCESS").touch()
    (bronze / "day 2/part.csv").write_text("id,text\n9,z\n")
    texts.land(users.createDataFrame(rows, "id int, text string"), "day 3")
    assert (bronze / "day 3/_SUCCESS").exists()

    orders = shop.entity("orders")
    orders.land(users.sql("SELECT 1 AS id, CAST(null AS string) AS name"), "1")
    (file,) = (folder / "lake/bronze/orders/1").glob("part-*")
    assert json.loads(file.read_text()) == {"id": 1, "name": None}

    # Frames of pandas and Polars: missing values, indexes, categories and times in the lake's zone.
    columns = {"id": [1, 2], "name": ["a", None], "at": [datetime(2024, 5, 1, 6), None]}
    known = pandas.DataFrame(columns).astype({"name": "category"})
    category = {"name": polars.Categorical}
    frames: tuple[Any, ...] = (
        known.set_index("id"),
        known[known["id"] > 0],
        polars.DataFrame(columns, schema_overrides=category),
    )
    for number, frame in enumerate(frames, start=2):
        orders.land(frame, str(number))
        files = (folder / f"lake/bronze/orders/{number}").glob("part-*")
        found = [json.loads(line) for each in files for line in each.read_text().splitlines()]
        assert sorted(found, key=lambda row: row["id"]) == [
            {"id": 1, "name": "a", "at": "2024-05-01T06:00:00.000000Z"},
            {"id": 2, "name": None, "at": None},
        ]
    shop.close()
    (folder / "project.yml").write_text(MODEL.replace("lake: {", "lake: {timezone: Europe/Amsterdam, "))
    with Project.load(folder, spark=users) as elsewhere:
        elsewhere.entity("orders").land(known[:1], "9")
        at = datetime(2024, 5, 1, 6, 0, 0, 123456)
        plain = [(1, "a", at, [(at,), None], {"x": [at]}, None)]
        nested = "s array<struct<t: ntz>>, m map<string, array<ntz>>, n struct<t: ntz>"
        types = f"id int, name string, at ntz, {nested}".replace("ntz", "timestamp_ntz")
        elsewhere.entity("orders").land(users.createDataFrame(plain, types), "10")
        of_pandas = pandas.DataFrame({"id": [1], "at": [at], "s": [[{"t": at}]]})
        elsewhere.entity("orders").land(of_pandas, "11")
    written = {}
    for name in ("9", "10", "11"):
        files = (folder / "lake/bronze/orders" / name).glob("part-*")
        (written[name],) = [json.loads(line) for each in files for line in each.read_text().splitlines()]
    times = [row["at"] for row in written.values()]
    times += [written["10"]["s"][0]["t"], written["10"]["m"]["x"][0], written["11"]["s"][0]["t"]]
    # One text for an instant, whatever the session; JSON would hold milliseconds.
    assert times == ["2024-05-01T04:00:00.000000Z"] + ["2024-05-01T04:00:00.123456Z"] * 5


@pytest.mark.nightly  # rare values
def test_landing_takes_columns_without_values_and_warns_of_numbers_that_json_lacks(
    folder: Path, users: SparkSession
) -> None:
    with Project.load(folder, spark=users) as shop:
        texts, orders = shop.entity("texts"), shop.entity("orders")
        empty = Path(texts.land(pandas.DataFrame({"id": [7], "text": ["x"]})[:0], "day 0").path)
        assert [each.read_text() for each in empty.glob("part-*")] == ["id;text\n"]
        shutil.rmtree(empty)
        texts.land(pandas.DataFrame({"id": [7], "text": [None]}), "day 1")
        shop.run("daily", "build", targets="texts").check()
        assert texts.read().select("id", "text").collect() == [(7, None)]
        with pytest.warns(LakewrightWarning, match="'n' has NaN or infinities, which JSON has as texts only"):
            orders.land(polars.DataFrame({"id": [8], "n": [float("nan")], "m": [1.5]}), "8")


ODD_DAYS = ((27, 10), (31, 3))


@pytest.mark.nightly  # rare values
def test_landing_refuses_times_that_the_lake_s_zone_has_twice_or_not_at_all(
    folder: Path, users: SparkSession
) -> None:
    (folder / "project.yml").write_text(MODEL.replace("lake: {", "lake: {timezone: Europe/Amsterdam, "))
    with Project.load(folder, spark=users) as shop:
        orders = shop.entity("orders")
        for (day, month), kind in product(ODD_DAYS, ("array<timestamp_ntz>", "timestamp_ntz")):
            odd = datetime(2024, month, day, 2, 30)
            row = (1, [odd] if "array" in kind else odd)
            said = f"column 'at': 2024-{month:02}-{day} 02:30:00 occurs twice or does not exist in Europe"
            with pytest.raises(UsageError, match=said) as refused:
                orders.land(users.createDataFrame([row], f"id int, at {kind}"), "1")
            assert "offsets" in str(refused.value.remedy)
        with pytest.raises(UsageError, match="column 'at': 2024-03-31 02:30:00 does not exist"):
            orders.land(pandas.DataFrame({"id": [1], "at": [datetime(2024, 3, 31, 2, 30)]}), "1")
        old = pandas.DataFrame({"id": [1], "at": [pandas.Timestamp("1850-01-01", tz="UTC")]})
        landed = orders.land(old, "0")
        (text,) = (each.read_text() for each in Path(landed.path).glob("part-*"))
        assert "1850-01-01T00:00:00.000000Z" in text  # its offset then, 0:17:30, has no place in the format
        around = [datetime(2024, 3, 31, 1, 59), datetime(2024, 3, 31, 3), datetime(2024, 10, 27, 3)]
        orders.land(users.createDataFrame(list(enumerate(around)), "id int, at timestamp_ntz"), "1")
    files = (folder / "lake/bronze/orders/1").glob("part-*")
    found = sorted(json.loads(line)["at"] for each in files for line in each.read_text().splitlines())
    clock = ("03-31T00:59", "03-31T01:00", "10-27T02:00")
    assert found == [f"2024-{each}:00.000000Z" for each in clock]


def test_landing_refuses_and_leaves_bronze_as_it_was(folder: Path, users: SparkSession) -> None:
    shop = Project.load(folder, spark=users)
    orders, texts = shop.entity("orders"), shop.entity("texts")
    one = users.sql("SELECT 1 AS id")
    orders.land(one, "1")
    bronze = folder / "lake/bronze"
    before = sorted(bronze.rglob("*"))
    refused: tuple[tuple[Any, Any, str, str], ...] = (
        (orders, one, "1", "has a slice 1 in .* already"),
        (orders, one, "_2", "can't be the name of a slice"),
        (orders, one.where("false"), "2", "has no rows"),
        (texts, users.sql("SELECT 1 AS id, array(1) AS list"), "2", "can't be landed as csv"),
        (shop.entity("latin"), one, "2", "encoded in ISO-8859-1"),
        (orders, [{"id": 1}], "2", "a list can't be landed"),
        (orders, pandas.DataFrame({"id": [1, "x"]}), "2", "Conversion failed for column id"),
        (orders, pandas.DataFrame([[1, 2]], columns=["id", "id"]), "2", "Duplicate column names found"),
        (texts, users.sql("SELECT 1.5D AS id"), "2", "column 'id': the value '1.5' doesn't fit the type int"),
        (texts, users.sql("SELECT 1 AS id, x'ff' AS name"), "2", "column 'name' has binary values"),
        (orders, users.sql("SELECT 1 AS id, array(x'ff') AS list"), "2", "column 'list' has binary values"),
        (orders, users.sql("SELECT 1 AS id, INTERVAL 1 DAY AS took"), "2", "column 'took' has intervals"),
        (texts, users.sql("SELECT 1 AS id, 2 AS ID"), "2", "several columns of the name id"),
        (orders, users.readStream.format("rate").load(), "2", "a streaming frame can't be landed"),
    )
    for entity, frame, name, message in refused:
        with pytest.raises(UsageError, match=message):
            entity.land(frame, name)
    with pytest.raises(SpecError, match="there is no entity 'order'"):
        shop.entity("order")
    assert [path for path in sorted(bronze.rglob("*")) if path.name != "texts"] == before
    # Whole numbers with gaps are fractions in pandas.
    texts.land(pandas.DataFrame({"id": [1, None, 3], "name": ["a", "b", "c"], "x": [1, None, 3]}), "2")
    lines = "".join(each.read_text() for each in (bronze / "texts/2").glob("part-*")).splitlines()
    assert {*lines} == {"id;name;x", "1;a;1.0", ";b;", "3;c;3.0"}

    ledger, holder = shop.app.ledger, shop.app.holder
    shop.plan("daily", "build")
    shop.run("daily", "validate")
    item = orders.land(one, "1", replace=True).item_id
    claim = ledger.acquire(
        item,
        application_of("shop", orders.declared),
        holder,
        duration=timedelta(minutes=1),
        token_counter="t",
    )
    with pytest.raises(ItemLocked):
        orders.land(one, "1", replace=True)
    ledger.failed(claim, {"error": {"message": "no"}})
    shop.close()


def test_a_replaced_slice_that_was_processed_is_said(
    folder: Path, users: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    with Project.load(folder, spark=users) as shop:
        orders = shop.entity("orders")
        orders.land(users.sql("SELECT 1 AS id, 'a' AS name"), "1")
        shop.run("daily", "build", targets="orders").check()
        with pytest.warns(LakewrightWarning, match="was processed before it was replaced") as told:
            landed = orders.land(users.sql("SELECT 1 AS id, 'b' AS name"), "1", replace=True)
        assert f'project.decide("orders/{landed.name}", "take")' in str(told[0].message)
        assert landed.is_replaced
        assert f"`lakewright decide orders/{landed.name} take`" in caplog.text

        # One that waits is processed with its new content: the run took it as changed since its discovery.
        orders.land(users.sql("SELECT 2 AS id, 'a' AS name"), "waits")
        shop.run("daily", "validate", targets="orders").check()
        orders.land(users.sql("SELECT 2 AS id, 'other' AS name"), "waits", replace=True)

        # A version or a time shows the table as it was.
        then = datetime.now(UTC)
        orders.land(users.sql("SELECT 1 AS id, 'c' AS name"), "2")
        shop.run("daily", "build", targets="orders").check()
        assert [row.name for row in orders.read().where("id = 2").collect()] == ["other"]
        names = "SELECT name FROM {frame} WHERE id = 1"
        for as_of, name in ((None, "c"), (0, "a"), (then, "a"), ("2999-01-01T00:00:00Z", "c")):
            assert users.sql(names, frame=orders.read(as_of=as_of)).first() == (name,), as_of
        assert shop.sql("SELECT name FROM orders WHERE id = 1").first() == ("c",)
        with pytest.raises(UsageError, match="Spark rejects the query"):
            shop.sql("SELECT nam FROM orders")
        with pytest.raises(UsageError, match="mine") as refused:
            shop.sql("SELECT * FROM mine")
        assert shop.spark.sql("SELECT * FROM mine").count() == 3  # it is the user's own session
        assert str(refused.value.remedy).endswith("is seen if it is global, as global_temp.mine.")
        with pytest.raises(TargetError, match="knows no version from"):
            orders.read(as_of=date(2001, 1, 1))
        with pytest.raises(
            TargetError, match=r"orders has no version 99: its log has versions 0 \(.+ to \d+ \("
        ):
            orders.read(as_of=99)
        with pytest.raises(UsageError, match="neither a version of the table nor a time"):
            orders.read(as_of="yesterday")
        with pytest.raises(TargetError, match="has no silver table yet"):
            shop.entity("texts").read()
        with pytest.raises(TargetError, match="entity 'texts' has no silver table yet"):
            shop.sql("SELECT * FROM texts")

        # Numbers of JSON keep the digits of the declared type.
        long = "12345678901234567890.12"
        exact = shop.entity("exact")
        exact.land(users.sql(f"SELECT 1 AS id, CAST('{long}' AS decimal(22,2)) AS large"), "1")
        exact.process()
        assert [str(row.large) for row in exact.read().collect()] == [long]


def test_a_relation_is_read_by_partition(folder: Path, users: SparkSession) -> None:
    users.sql("SELECT id, CAST('2024-05-01' AS date) + CAST(id AS int) AS day FROM mine").write.partitionBy(
        "day"
    ).json(str(folder / "days"))
    with Project.load(folder, spark=users) as shop:
        days = shop.relation("days")
        assert repr(days) == "<Relation days (file)>"
        assert days.read().count() == 3
        assert days.read(partition={"day": date(2024, 5, 2)}).select("id").first() == (1,)
        assert days.read(partition={"day": ["2024-05-01", date(2024, 5, 2)]}).count() == 2
        with pytest.raises(SpecError, match="there is no mapping 'day'"):
            shop.mapping("day")


MISSING = """
connections:
  db:
    kind: jdbc
    url: jdbc:derby:memory:missing;create=true
    driver: org.apache.derby.iapi.jdbc.AutoloadedDriver
relations:
  view: {kind: view, view: nope7, sql: "SELECT 1 AS a"}
  query: {kind: hiveQuery, sql: "SELECT * FROM nope9"}
  given: {kind: provided, table: global_temp.nope}
  broken: {kind: jdbcQuery, connection: db, sql: "SELEC 1"}
mappings:
  rejected: {kind: sql, sql: "SELECT nope FROM (SELECT 1 AS a)"}
  of_broken: {kind: relation, relation: broken}
"""


def test_what_cannot_be_read_is_an_error_of_lakewright_s_and_pyspark_prints_nothing(
    folder: Path, users: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # In other tests, these loggers are silent.
    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        monkeypatch.delitem(logging.root.manager.loggerDict, logger)
    (folder / "model" / "missing.yml").write_text(MISSING)
    told: dict[str, tuple[type[LakewrightError], str]] = {
        "view": (TargetError, "relation 'view': there is no nope7 in the catalog"),
        "query": (SpecError, r"relation 'query': Spark rejects it: \[TABLE_OR_VIEW_NOT_FOUND\].*`nope9`"),
        "given": (TargetError, r"relation 'given': there is no global_temp.nope in the catalog"),
        "broken": (TargetError, r"Spark failed while relation 'broken' was read: \[JDBC.*SELEC 1"),
    }
    with Project.load(folder, spark=users) as shop:
        for name, (kind, said) in told.items():
            with pytest.raises(kind, match=said) as refused:
                shop.relation(name).read()
            assert refused.value.remedy
        with pytest.raises(SpecError, match="mapping 'rejected': Spark rejects it"):
            shop.mapping("rejected").read()
        with pytest.raises(TargetError, match="Spark failed while mapping 'of_broken' was read"):
            shop.mapping("of_broken").read()
        assert "QueryContextLogger" not in capsys.readouterr().err
        with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
            users.sql("SELECT nope FROM (SELECT 1 AS a)")
        assert (
            "SQLQueryContextLogger" in capsys.readouterr().err
        )  # the user's own queries are logged as before
