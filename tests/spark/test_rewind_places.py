"""Undo and rebuild of tables that are not folders of this machine: in a catalog, and in S3."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.commands import InProcess
from tests.stores.s3 import running_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODEL = """
connections:
  shop: {settings: {bronze_path: "${entity}", SILVER}}
entities:
  prices:
    id: 1
    connection: shop
    processtype: historic
    columns: [{name: id, datatype: integer, fieldroles: [businesskey]}, {name: name, datatype: string}]
    settings: {format: csv}
"""
FIRST, SECOND, THIRD = (f"2024-05-0{day}.csv" for day in (1, 2, 3))
SLICES = {FIRST: "1,a\n2,b\n", SECOND: "2,B\n3,c\n", THIRD: "1,A\n3,C\n"}
OLD = [(1, "a", "05-01", "05-03"), (1, "A", "05-03", None)]
"""The versions of a record that the second slice does not have."""


def project(folder: Path, session: SparkSession, silver: str, **sections: Any) -> InProcess:
    (folder / "model.yml").write_text(MODEL.replace("SILVER", silver))
    (folder / "project.yml").write_text(json.dumps({"name": "shop", "modules": ["model.yml"], **sections}))
    return InProcess(folder, session)


def rows(shop: InProcess) -> list[tuple[Any, ...]]:
    day = "date_format(dlf_Valid{0}, 'MM-dd') AS {0}"
    query = (
        f"SELECT id, name, {day.format('From')}, {day.format('To')} FROM prices ORDER BY id, dlf_ValidFrom"
    )
    return [tuple(row.values()) for row in shop.json("sql", query)]


def done(shop: InProcess, *command: str) -> str:
    found = shop.run(*command)
    assert found.code == 0, found.all
    return found.out


def process(shop: InProcess) -> None:
    done(shop, "process", "prices", "--processing-time", "${slice.date}")


def check_story(shop: InProcess, put: Callable[[str, str], None]) -> None:
    """Undo the last slice and process it again, undo one before it, and build the table again."""
    for name in (FIRST, SECOND):
        put(name, SLICES[name])
    process(shop)
    two = rows(shop)
    put(THIRD, SLICES[THIRD])
    process(shop)
    three = rows(shop)
    assert shop.json("undo", "prices", THIRD, "--yes")["replayed"] == []
    assert rows(shop) == two
    done(shop, "manifest", "requeue", f"prices/{THIRD}")
    process(shop)
    assert rows(shop) == three

    undone = shop.json("undo", "prices", SECOND, "--yes")
    assert undone["replayed"] == [THIRD]
    without = [*OLD, (2, "b", "05-01", None), (3, "C", "05-03", None)]
    assert rows(shop) == without
    compared = shop.json("rebuild", "prices", "--check")["difference"]
    assert (compared["rows_equal"], compared["rows_only_before"], compared["rows_only_after"]) == (4, 0, 0)
    # What the comparison has built is used; it is no attempt that failed.
    rebuilt = shop.run("rebuild", "prices", "--yes")
    assert (rebuilt.code, "earlier attempt" in rebuilt.err) == (0, False), rebuilt.all
    assert rows(shop) == without
    assert shop.json("doctor", "prices")["ok"]


@pytest.fixture
def database(spark: SparkSession) -> Iterator[str]:
    yield "rewinds"
    spark.sql("DROP DATABASE IF EXISTS rewinds CASCADE")


@pytest.mark.nightly
def test_a_table_of_the_catalog_is_rewound(spark: SparkSession, tmp_path: Path, database: str) -> None:
    lake = {"root_folder": "${project.basedir}/lake"}
    shop = project(tmp_path, spark, f'silver_table: "{database}.${{entity}}"', lake=lake)
    bronze = tmp_path / "lake" / "bronze" / "prices"
    bronze.mkdir(parents=True)
    check_story(shop, lambda name, text: _ignore((bronze / name).write_text(f"id,name\n{text}")))
    tables = [row["tableName"] for row in spark.sql(f"SHOW TABLES IN {database}").collect()]
    assert tables == ["prices"], "the table beside it is gone"


@pytest.mark.nightly
def test_a_table_in_s3_is_rewound(spark: SparkSession, tmp_path: Path) -> None:
    with running_store() as store:
        bucket = store.new_bucket()
        shop = project(
            tmp_path,
            spark,
            'silver_path: "${entity}"',
            lake={"root_folder": f"s3a://{bucket}/lake"},
            storage=store.section,
            manifest={"kind": "delta", "location": f"s3://{bucket}/manifest"},
        )
        check_story(
            shop, lambda name, text: store.put_at(bucket, f"lake/bronze/prices/{name}", f"id,name\n{text}")
        )
        left = store.client.list_objects_v2(Bucket=bucket, Prefix="lake/silver/prices__rebuild")
        assert left["KeyCount"] == 0


PAST = """
connections:
  shop: {settings: {bronze_path: "${entity}", format: csv}}
entities:
  stock: &stock
    id: 1
    connection: shop
    processtype: historic
    columns: [{name: id, datatype: integer, fieldroles: [businesskey]}, {name: name, datatype: string}]
    settings: {silver_path: "${entity}", history_from: {folder: exports, valid_from: since}}
  goods:
    <<: *stock
    id: 2
    settings: {silver_table: "DATABASE.${entity}", history_from: {table: DATABASE.old, valid_from: since}}
"""
EXPORT = ("id,name,since", "1,a,2020-01-01", "2,b,2020-01-01", "2,c,2021-01-01")
LIVES = [
    (1, "a", "2020-01-01", None),
    (2, "b", "2020-01-01", "2021-01-01"),
    (2, "c", "2021-01-01", "2024-05-01"),
    (2, "d", "2024-05-01", None),
]


@pytest.mark.nightly
def test_past_versions_and_a_rehearsal_work_in_s3_and_in_a_catalog(
    spark: SparkSession, tmp_path: Path, database: str
) -> None:
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    values = ", ".join("({}, '{}', '{}')".format(*line.split(",")) for line in EXPORT[1:])
    spark.sql(f"CREATE TABLE {database}.old USING delta AS SELECT * FROM VALUES {values} AS t({EXPORT[0]})")
    with running_store() as store:
        bucket = store.new_bucket()
        lake = {"root_folder": f"s3a://{bucket}/lake"}
        kept = {"kind": "delta", "location": f"s3://{bucket}/manifest"}
        shop = project(tmp_path, spark, "", lake=lake, storage=store.section, manifest=kept)
        (tmp_path / "model.yml").write_text(PAST.replace("DATABASE", database))
        store.put_at(bucket, "lake/exports/2021.csv", "\n".join(EXPORT))
        for name in ("stock", "goods"):
            for slice_, text in ((FIRST, "1,a\n2,d\n"), (SECOND, "1,A\n3,x\n")):
                store.put_at(bucket, f"lake/bronze/{name}/{slice_}", f"id,name\n{text}")
            done(shop, "process", name, FIRST, "--processing-time", "${slice.date}")
            assert lives(shop, name) == LIVES
            assert "(history_from)" in done(shop, "history", "row", name, "1")

            rehearsed = shop.json("process", name, SECOND, "--rehearse", "--processing-time", "2024-05-02")
            assert lives(shop, name) == LIVES
            assert shop.json("doctor", name)["ok"]
            assert rehearsed["error"] is None
            assert {each: n for each, n in rehearsed["counts"].items() if n} == {"inserted": 1, "updated": 1}
        left = store.client.list_objects_v2(Bucket=bucket, Prefix="lake/silver/stock__rehearsal")
        assert left["KeyCount"] == 0
    tables = {row["tableName"] for row in spark.sql(f"SHOW TABLES IN {database}").collect()}
    assert tables == {"goods", "old"}, "the clone of the rehearsal is gone"


def lives(shop: InProcess, entity: str) -> list[tuple[Any, ...]]:
    """Return the versions of all records, with the days between which they hold."""
    day = "date_format(dlf_Valid{0}, 'yyyy-MM-dd') AS {0}"
    query = f"SELECT id, name, {day.format('From')}, {day.format('To')} FROM {entity} ORDER BY 1, 3"
    return [tuple(row.values()) for row in shop.json("sql", query)]


def _ignore(_: object) -> None:
    """Return nothing."""
