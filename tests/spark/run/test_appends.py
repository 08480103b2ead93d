"""An append that a run could not record is not done again by the run that resumes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.spark.run.shops import make_shop

from lakewright.lake.failpoint import FAILPOINT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODEL = """
relations:
  log: {kind: delta, location: gold/log, schema: {fields: [{name: day, type: date}, {name: n, type: int}]}}
  named:
    kind: delta
    database: appends
    table: named
    schema: {fields: [{name: day, type: date}, {name: n, type: int}]}
  copied: {kind: delta, location: gold/copied}
mappings:
  rows: {kind: sql, sql: "SELECT DATE'$day' AS day, 1 AS n"}
targets:
  log: {kind: relation, mapping: rows, relation: log, mode: APPEND}
  named: {kind: relation, mapping: rows, relation: named, mode: APPEND, buildPolicy: IF_CHANGED}
  copied: {kind: copy, source: {kind: mapping, mapping: rows}, mode: APPEND,
           target: {kind: relation, relation: copied}}
jobs:
  daily: {parameters: [{name: day, type: date}], targets: [log, named, copied]}
"""
COUNT = " UNION ALL ".join(
    f"SELECT count(*) AS n FROM {name} WHERE n = 1" for name in ("log", "named", "copied")
)


def test_rows_that_a_run_has_added_are_there_once_after_it_is_resumed(
    tmp_path: Path, spark: SparkSession
) -> None:
    shop = make_shop(tmp_path, MODEL, spark)

    try:
        build = ("job", "daily", "build", "day=2022-01-02")
        cut_off = shop.run(*build, "-k", **{FAILPOINT: "after_append:raise"})
        assert (cut_off.code, cut_off.all.count("failpoint after_append") > 2) == (1, True), cut_off.all

        planned = shop.run("plan", "daily", "build", "day=2022-01-02").all
        assert "log, named, copied: an earlier attempt has added its rows already" in planned, planned
        # Somebody puts a table back to before the append, and adds other rows.
        log = f"delta.`{tmp_path / 'gold/log'}`"
        spark.sql(f"RESTORE TABLE {log} TO VERSION AS OF 0")
        spark.sql(f"INSERT INTO {log} VALUES (DATE'2022-01-01', 5)")
        planned = shop.run("plan", "daily", "build", "day=2022-01-02", "--resume").all
        assert "log (relation): output mode APPEND adds rows" in planned
        assert "named, copied: an earlier attempt has added its rows already" in planned
        resumed = shop.run(*build, "--resume")
        assert resumed.code == 0, resumed.all
        assert resumed.all.count("an earlier attempt has added its rows already") == 2
        assert [row["n"] for row in shop.json("sql", COUNT)] == [1, 1, 1]

        # What the rows were built from was in the commit.
        assert "neither its definition nor its inputs have changed" in shop.run("plan", *build[1:]).all
    finally:
        spark.sql("DROP TABLE IF EXISTS appends.named")
        spark.sql("DROP DATABASE IF EXISTS appends")
