"""A project in the short form, applied: history by the dates in names, current rows, gold.

What a correction makes of it is in `docs/quickstart.md`, which a test of `tests/acceptance` types.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.commands import InProcess
from tests.silver import pa, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pq: Any = import_module("pyarrow.parquet")

PROJECT = """
name: shop
entities:
  people: {from: landing/people/*.csv, key: id, strategy: historic, columns: {id: long}, deletes: flag gone}
  orders: {from: "exports/{date}/orders.csv", key: [shop, nr], strategy: merge, deletes: snapshot}
  notes: {from: notes/*.json, strategy: full}
tables:
  cities: {sql: sql/cities.sql, checks: {city: [notNull, unique]}}
  versions: {sql: "SELECT id, count(*) AS n FROM people.history GROUP BY id"}
  doubled: {python: "code/doubled.py:doubled", inputs: [cities]}
"""

FILES = {
    "landing/people/2024-05-01.csv": "id,city,gone\n1,Rome,false\n2,Pisa,false\n",
    "landing/people/20240502T0630.csv": "id,city,gone\n2,Rome,false\n1,Rome,true\n3,Bari,false\n",
    "exports/2024-05-01/orders.csv": "shop,nr,n\na,1,5\na,2,6\n",
    "exports/2024-05-02/orders.csv": "shop,nr,n\na,1,7\n",
    "exports/2024-05-02/people.csv": "of another entity\n",
    "notes/a.json": '{"t": "x"}\n',
    "sql/cities.sql": "SELECT city, count(*) AS n FROM people GROUP BY city",
    "code/doubled.py": "def doubled(cities):\n    return cities.selectExpr('city', '2 * n AS n')\n",
}


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> InProcess:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "project.yml").write_text(PROJECT)
    return InProcess(tmp_path, spark)


def rows(shop: InProcess, query: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in shop.json("sql", query)]


def test_apply_makes_what_twelve_lines_declare(shop: InProcess) -> None:
    done = shop.json("apply")
    first, second = "2024-05-01 00:00:00", "2024-05-02 06:30:00"
    assert {each["entity"]: each["slices"] for each in done["entities"]} == {
        "people": 2,
        "orders": 2,
        "notes": 1,
    }
    assert done["left"]["steps"] == []
    history = "SELECT id, city, string(dlf_ValidFrom), dlf_deleted FROM people.history ORDER BY id, 3"
    assert rows(shop, history) == [
        (1, "Rome", first, True),
        (2, "Pisa", first, False),
        (2, "Rome", second, False),
        (3, "Bari", second, False),
    ]
    assert rows(shop, "SELECT id FROM people ORDER BY id") == [(2,), (3,)]
    assert rows(shop, "SELECT shop, nr, n FROM orders") == [("a", "1", "7")]
    tables = {name: rows_of(shop.folder / "lake" / name) for name in ("silver/orders", "gold/doubled")}
    assert {(row["nr"], row["dlf_deleted"]) for row in tables["silver/orders"]} == {("1", False), ("2", True)}
    assert {(row["city"], row["n"]) for row in tables["gold/doubled"]} == {("Bari", 2), ("Rome", 2)}
    assert {"id": 2, "n": 2} in rows_of(shop.folder / "lake/gold/versions")


CHOSEN = """
name: chosen
entities:
  orders: {from: "in/{date}/orders-*.csv", key: nr}
  days: {from: "in/{date}/*.csv", key: nr}
  parts: {from: "parts/{date}/*.parquet", key: nr, columns: {nr: string}}
"""


def test_files_beside_those_of_a_pattern_are_not_read(tmp_path: Path, spark: SparkSession) -> None:
    """Neither those of other names, nor those in folders below; four slices are read together."""
    (tmp_path / "project.yml").write_text(CHOSEN)
    (tmp_path / "in/2024-05-01/below").mkdir(parents=True)
    for name in ("orders-1.csv", "orders-2.csv", "people.csv", "notes.txt"):
        (tmp_path / "in/2024-05-01" / name).write_text(f"nr,n\n{name},1\n")
    (tmp_path / "in/2024-05-01/below/orders-3.csv").write_text("n,nr\n3,other\n")
    for day in ("2024-05-01", "2024-05-02", "2024-05-03", "2024-05-04"):
        (tmp_path / "parts" / day / "below").mkdir(parents=True)
        for name in ("a.parquet", "below/b.parquet"):
            pq.write_table(pa.table({"nr": [f"{day}/{name}"]}), tmp_path / "parts" / day / name)
    shop = InProcess(tmp_path, spark)
    assert shop.run("apply").code == 0
    read = {name: rows_of(tmp_path / "lake/silver" / name) for name in ("orders", "days", "parts")}
    orders, days, parts = (sorted(row["nr"] for row in each) for each in read.values())
    assert orders == ["orders-1.csv", "orders-2.csv"]
    assert days == [*orders, "people.csv"]
    assert [each.partition("/")[2] for each in parts] == ["a.parquet"] * 4


REGISTERED = """
name: shop
lake: {register: PLACE}
entities:
  orders: {from: "exports/{date}/orders.csv", key: [shop, nr], strategy: merge}
  notes: {from: notes/*.json, strategy: full}
tables:
  counts: {sql: "SELECT count(*) AS n FROM notes"}
"""


def register_in(shop: InProcess, database: str) -> None:
    (shop.folder / "project.yml").write_text(REGISTERED.replace("PLACE", database))


def test_tables_by_path_get_a_name_in_the_catalog_and_lose_it_with_their_rows(
    shop: InProcess, spark: SparkSession
) -> None:
    register_in(shop, "registered")
    spark.sql("CREATE DATABASE registered")
    try:
        spark.sql("CREATE TABLE registered.notes (other int) USING parquet")
        done = shop.run("apply")
        tables = ["counts", "notes", "orders"]
        assert (done.code, [name for name in tables if f"registered.{name}:" in done.err]) == (0, ["notes"])
        assert [row.tableName for row in spark.sql("SHOW TABLES IN registered").collect()] == tables
        assert spark.table("registered.notes").columns == ["other"]
        assert spark.table("registered.orders").count() == 2
        assert [tuple(row) for row in spark.table("registered.counts").collect()] == [(1,)]

        assert shop.run("job", "all", "destroy", "-t", "orders", "--yes").code == 0
        assert not spark.catalog.tableExists("registered.orders")
        assert spark.catalog.tableExists("registered.counts")
    finally:
        spark.sql("DROP DATABASE registered CASCADE")


def test_a_catalog_that_is_not_there_is_reported_and_create_registers_later(
    shop: InProcess, spark: SparkSession
) -> None:
    register_in(shop, "nowhere.registered")
    done = shop.run("job", "all", "build", "-t", "notes")
    assert (done.code, "nowhere.registered.notes" in done.err) == (0, True)
    register_in(shop, "later")
    try:
        assert shop.run("job", "all", "create", "--force", "-t", "notes").code == 0
        assert spark.table("later.notes").count() == 1
    finally:
        spark.sql("DROP DATABASE IF EXISTS later CASCADE")
