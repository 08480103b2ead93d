"""Undo and rebuild of tables that are not folders of this machine: in a catalog, and in S3 (issue 15)."""

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
    assert "continued" in shop.run("rebuild", "prices", "--yes").err
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


def _ignore(_: object) -> None:
    """Return nothing."""
