"""Rows of gold that another program has changed are told, until the next build or until it is taken back."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.run.shops import make_shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
DAYS = "day:start=2026-01-01 day:end=2026-01-02"
CHANGED = "were changed by another program since the last build: version"


class Shop:
    """A project whose gold was built for two days."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder, self.spark, self.run = folder, spark, make_shop(folder, MODEL, spark).run
        done = self.run("job", "daily", "build", "day:start=2026-01-01", "day:end=2026-01-02")
        assert (done.code, self.is_calm()) == (0, True), done.all

    def is_calm(self) -> bool:
        return self.run("status").all.startswith("Nothing is running")

    def type_commands(self, told: str) -> None:
        for command in re.findall(r"`lakewright ([^`]*)`", told):
            done = self.run(*command.split())
            assert done.code == 0, done.all

    def table(self, name: str) -> str:
        return f"delta.`{self.folder / 'gold' / name}`"

    def rows(self, name: str, columns: str = "n, string(day)") -> list[tuple[int, str]]:
        found = self.spark.sql(f"SELECT {columns} FROM {self.table(name)} ORDER BY ALL").collect()
        return sorted(tuple(row) for row in found)


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Shop:
    return Shop(tmp_path, spark)


def test_changed_rows_of_gold_are_told_until_they_are_taken_back_or_the_job_has_run(
    shop: Shop, spark: SparkSession
) -> None:
    days = shop.table("days")
    spark.sql(f"OPTIMIZE {days}")
    assert shop.is_calm()
    written = spark.sql(f"DESCRIBE HISTORY {days}").where("operation = 'WRITE'").collect()
    last = max(row["version"] for row in written)
    spark.sql(f"UPDATE {days} SET n = 5 WHERE day = '2026-01-02'")
    told = shop.run("status").all
    assert CHANGED in told
    assert "(UPDATE)" in told
    (restore,) = re.findall(r"(RESTORE TABLE .*)\.", told)
    assert restore.endswith(f" {last}")
    assert CHANGED in shop.run("plan", "daily", "build", "day=2026-01-04").all
    spark.sql(restore)
    assert shop.is_calm()

    # The next build goes on with the rows, and says so.
    spark.sql(f"UPDATE {days} SET n = 5 WHERE day = '2026-01-02'")
    assert CHANGED in shop.run("job", "daily", "build", "day=2026-01-04").all
    told = shop.run("status").all
    assert "Tables that another program has changed" not in told
    assert "SUCCESS_WITH_ERRORS days (day=2026-01-04) BUILD" in told, "until the next run of the job"
    assert shop.run("job", "daily", "build", "day=2026-01-05").code == 0
    assert shop.is_calm()


def test_what_others_took_out_of_gold_is_built_again_once_by_what_is_named(
    shop: Shop, spark: SparkSession
) -> None:
    # Also where older rows are.
    spark.sql(f"RESTORE TABLE {shop.table('days')} TO VERSION AS OF 1")
    told = shop.run("status").all
    assert "was replaced by another program since the last build" in told
    shop.type_commands(told)
    assert shop.is_calm()
    assert shop.rows("days") == [(1, f"2026-01-0{n}") for n in range(1, 3)]

    # Of a table that others wrote as a whole, nobody knows what it holds: nothing is added to it.
    log = shop.table("log")
    kept = "SELECT n, day FROM _ WHERE day = '2026-01-02'".replace("_", log)
    spark.sql(f"CREATE OR REPLACE TABLE {log} USING delta PARTITIONED BY (day) AS {kept}")
    told = shop.run("status").all
    assert "It may lack" in told
    planned = shop.run("plan", "daily", "build", "day=2026-01-02").all
    assert "to others, which no recorded run has added" in planned
    shop.type_commands(told)
    assert shop.is_calm()
    assert shop.rows("log") == [(1, f"2026-01-0{n}") for n in range(1, 3)]

    # A RESTORE and a build for the same rows would bring them twice.
    spark.sql(f"DELETE FROM {log} WHERE day = '2026-01-02'")
    told = shop.run("status").all
    assert "RESTORE" not in told
    shop.type_commands(told.partition("If somebody removed them on purpose")[0])
    assert shop.is_calm()
    assert shop.rows("log") == [(1, f"2026-01-0{n}") for n in range(1, 3)]

    spark.sql(f"DELETE FROM {shop.table('whole')}")
    shop.type_commands(shop.run("status").all.partition("If somebody removed them on purpose")[0])
    spark.sql(f"UPDATE {shop.table('whole')} SET n = 7")
    told = shop.run("status").all
    assert "The next build writes all rows again" in told
    shop.type_commands(told)
    assert shop.is_calm()
    assert shop.rows("whole", "n, ''") == [(1, "")]


@pytest.mark.nightly  # test_night.py has such a copy of a shared table
def test_an_older_copy_from_before_a_truncate_is_emptied_before_its_rows_are_added_again(
    shop: Shop, tmp_path: Path
) -> None:
    """The commands that were named added them to those that the copy had from before."""
    rows = shop.rows("log")
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "gold/log", copy)
    for command in (f"truncate -t log {DAYS} --yes", f"build -t log {DAYS}"):
        assert shop.run("job", "daily", *command.split()).code == 0
    shutil.rmtree(tmp_path / "gold/log")
    shutil.copytree(copy, tmp_path / "gold/log")
    told = shop.run("status").all
    assert "gold/log is at version" in told
    shop.type_commands(told)
    assert (shop.rows("log"), shop.is_calm()) == (rows, True)
