"""Rows of gold that another program has changed are told, until the next build or until it is taken back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.commands import InProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = "name: shop\nmodules: [model]\nlake: {root_folder: lake}\n"
MODEL = """
relations:
  days:
    kind: delta
    location: gold/days
    partitions: [{name: day, type: date}]
    schema: {fields: [{name: n, type: int}]}
  log:
    kind: delta
    location: gold/log
    partitions: [{name: day, type: date}]
    schema: {fields: [{name: n, type: int}]}
  whole: {kind: delta, location: gold/whole, schema: {fields: [{name: n, type: int}]}}
mappings:
  rows: {kind: sql, sql: "SELECT 1 AS n"}
targets:
  days: {kind: relation, mapping: rows, relation: days, partition: {day: $day}}
  log: {kind: relation, mapping: rows, relation: log, partition: {day: $day}, mode: APPEND}
  whole: {kind: relation, mapping: rows, relation: whole}
jobs:
  daily: {parameters: [{name: day, type: date}], targets: [days, log, whole]}
"""
CHANGED = "were changed by another program since the last build: version"


def test_what_another_program_did_to_gold_is_told_until_it_is_mended(
    tmp_path: Path, spark: SparkSession
) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "project.yml").write_text(PROJECT)
    (tmp_path / "model/model.yml").write_text(MODEL)
    shop = InProcess(tmp_path, spark)
    days, log, whole = (f"delta.`{tmp_path / 'gold' / name}`" for name in ("days", "log", "whole"))

    def is_calm() -> bool:
        return shop.run("status").all.startswith("Nothing is running")

    def type_commands(told: str) -> None:
        for command in re.findall(r"`lakewright ([^`]*)`", told):
            done = shop.run(*command.split())
            assert done.code == 0, done.all

    def rows(table: str) -> list[tuple[int, str]]:
        return [tuple(row) for row in spark.sql(f"SELECT n, string(day) FROM {table} ORDER BY day").collect()]

    done = shop.run("job", "daily", "build", "day:start=2026-01-01", "day:end=2026-01-03")
    assert (done.code, is_calm()) == (0, True), done.all

    spark.sql(f"OPTIMIZE {days}")
    assert is_calm()
    written = spark.sql(f"DESCRIBE HISTORY {days}").where("operation = 'WRITE'").collect()
    last = max(row["version"] for row in written)
    spark.sql(f"UPDATE {days} SET n = 5 WHERE day = '2026-01-02'")
    told = shop.run("status").all
    assert CHANGED in told
    assert "(UPDATE)" in told
    (restore,) = re.findall(r"in SQL: (RESTORE .*)\.", told)
    assert restore.endswith(f" {last}")
    assert CHANGED in shop.run("plan", "daily", "build", "day=2026-01-04").all
    spark.sql(restore)
    assert is_calm()

    # The next build goes on with the rows, says so, and ends the message.
    spark.sql(f"UPDATE {days} SET n = 5 WHERE day = '2026-01-02'")
    assert CHANGED in shop.run("job", "daily", "build", "day=2026-01-04").all
    assert is_calm()

    # Builds that a RESTORE took out are built again by what is named, also where older rows are.
    spark.sql(f"RESTORE TABLE {days} TO VERSION AS OF 2")
    told = shop.run("status").all
    assert "was replaced by another program since the last build" in told
    type_commands(told)
    assert is_calm()
    assert rows(days) == [(1, f"2026-01-0{n}") for n in range(1, 5)]

    # Of a table that others wrote as a whole, nobody knows what it holds: nothing is added to it.
    kept = "SELECT n, day FROM _ WHERE day = '2026-01-02'".replace("_", log)
    spark.sql(f"CREATE OR REPLACE TABLE {log} USING delta PARTITIONED BY (day) AS {kept}")
    told = shop.run("status").all
    assert "It may lack" in told
    assert (
        "to others, which no recorded run has added"
        in shop.run("plan", "daily", "build", "day=2026-01-02").all
    )
    type_commands(told)
    assert is_calm()
    assert rows(log) == [(1, f"2026-01-0{n}") for n in range(1, 5)]

    spark.sql(f"DELETE FROM {whole}")
    type_commands(shop.run("status").all)
    spark.sql(f"UPDATE {whole} SET n = 7")
    told = shop.run("status").all
    assert "The next build writes all rows again" in told
    type_commands(told)
    assert is_calm()
    assert [tuple(row) for row in spark.sql(f"SELECT n FROM {whole}").collect()] == [(1,)]
