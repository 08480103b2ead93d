"""Targets of one job, and of two, that append to one partition of one table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.spark.run.shops import make_shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODEL = """
relations:
  log:
    kind: delta
    location: gold/log
    partitions: [{name: day, type: date}]
    schema: {fields: [{name: who, type: string}]}
mappings:
  a: {kind: sql, sql: "SELECT 'a' AS who"}
  b: {kind: sql, sql: "SELECT 'b' AS who"}
  c: {kind: sql, sql: "SELECT 'c' AS who"}
  w: {kind: sql, sql: "SELECT 'w' AS who, explode(array(DATE'2026-01-02', DATE'2026-01-03')) AS day"}
targets:
  a:
    kind: relation
    mapping: a
    relation: log
    partition: {day: $day}
    mode: APPEND
    buildPolicy: IF_CHANGED
  b:
    kind: relation
    mapping: b
    relation: log
    partition: {day: $day}
    mode: APPEND
    buildPolicy: IF_CHANGED
  c: {kind: relation, mapping: c, relation: log, partition: {day: $d}, mode: APPEND}
  w: {kind: relation, mapping: w, relation: log, mode: APPEND}
jobs:
  daily: {parameters: [{name: day, type: date}], targets: [a, b]}
  other: {parameters: [{name: d, type: date}], targets: [c]}
"""


WEEKLY = """
  weekly: {targets: [w]}
"""


def test_what_several_targets_append_to_one_partition_is_there_once(
    tmp_path: Path, spark: SparkSession
) -> None:
    shop = make_shop(tmp_path, MODEL, spark)

    def rows() -> list[str]:
        found = spark.sql(f"SELECT who FROM delta.`{tmp_path / 'gold/log'}`").collect()
        return sorted(str(row["who"]) for row in found)

    def run(command: str) -> str:
        done = shop.run(*command.split())
        assert done.code == 0, done.all
        return str(done.all)

    # The one is not what the other was built from.
    run("job daily build day=2026-01-02")
    assert rows() == ["a", "b"]
    run("job other build d=2026-01-02")
    assert rows() == ["a", "b", "c"]
    assert shop.run("status").all.startswith("Nothing is running")

    # Who empties the partition for one of them is told of the others, also of the same instance.
    planned = run("plan daily truncate -t a day=2026-01-02")
    assert "2 other instances were built into it" in planned
    run("job daily truncate -t a day=2026-01-02 --yes")
    told = shop.run("status").all
    assert ("b (day=2026-01-02)" in told, "c (d=2026-01-02)" in told) == (True, True)
    # Its rows are gone, although others are in the partition again.
    run("job other build -t c d=2026-01-02")
    told = shop.run("status").all
    assert ("b (day=2026-01-02)" in told, "c (d=2026-01-02)" in told) == (True, False)
    assert "once more" not in run("plan daily build day=2026-01-02")
    for command in re.findall(r"`lakewright ([^`]*)`", told):
        run(command)
    assert rows() == ["b", "c"]
    run("job daily build day=2026-01-02")
    assert rows() == ["a", "b", "c"]
    assert shop.run("status").all.startswith("Nothing is running")

    # A target of another job that adds to all days is told of the part that goes.
    (tmp_path / "m.yml").write_text(MODEL + WEEKLY)
    run("job weekly build")
    assert rows() == ["a", "b", "c", "w", "w"]
    run("job other truncate -t c d=2026-01-02 --yes")
    told = shop.run("status").all
    assert "w: its rows were removed by TRUNCATE" in told
    for command in re.findall(r"`lakewright ([^`]*)`", told):
        shop.run(*command.split())
    run("job other build d=2026-01-02 -t c") if "c" not in rows() else None
    assert rows() == ["a", "b", "c", "w", "w"]


OVERWRITING = """
relations:
  log:
    kind: delta
    location: gold/log
    partitions: [{name: Day, type: date}]  # its partitions are written with a capital
    schema: {fields: [{name: who, type: string}]}
mappings:
  a: {kind: sql, sql: "SELECT 'a' AS who"}
  o: {kind: sql, sql: "SELECT 'o' AS who"}
  w: {kind: sql, sql: "SELECT 'w' AS who, explode(array(DATE'2026-01-02', DATE'2026-01-03')) AS Day"}
targets:
  a: {kind: relation, mapping: a, relation: log, partition: {Day: $day}, mode: APPEND}
  o: {kind: relation, mapping: o, relation: log, partition: {Day: $day}, mode: OVERWRITE}
  w: {kind: relation, mapping: w, relation: log, mode: APPEND}
jobs:
  daily: {parameters: [{name: day, type: date}], targets: [a]}
  other: {parameters: [{name: day, type: date}], targets: [o]}
  weekly: {targets: [w]}
"""


def test_a_build_that_replaces_a_partition_tells_the_others_whose_rows_were_there(
    tmp_path: Path, spark: SparkSession
) -> None:
    shop = make_shop(tmp_path, OVERWRITING, spark)
    day = "day=2026-01-02"

    def rows() -> list[str]:
        found = spark.sql(f"SELECT who FROM delta.`{tmp_path / 'gold/log'}`").collect()
        return sorted(str(row["who"]) for row in found)

    def run(command: str) -> str:
        done = shop.run(*command.split())
        assert done.code == 0, done.all
        return str(done.all)

    run("job other build " + day)
    run("job daily build " + day)
    assert rows() == ["a", "o"]
    run("job daily build day=2026-01-03")
    told = "target 'o': BUILD replaces the partition day=2026-01-02 of"
    planned = run(f"plan other build {day} --force")
    assert (told in planned, "a had built day=2026-01-02 into it" in planned) == (True, True)
    assert told in run(f"job other build {day} --force")
    assert rows() == ["a", "o"]
    status = shop.run("status").all
    assert f"a ({day}): its rows were replaced by another target" in status
    # Its rows are not counted as there, although nobody has emptied the partition.
    commands = re.findall(r"`lakewright (job [^`]*)`", status)
    assert commands == [f"job daily build {day}"]
    assert "once more" not in run(commands[0])
    assert rows() == ["a", "a", "o"]
    assert shop.run("status").all.startswith("Nothing is running")

    # What another target has in other partitions as well is lost in part.
    run("job weekly build")
    assert "a part of what w has built is gone, too" in run(f"job other build {day} --force")
    assert rows() == ["a", "o", "w"]
    told = shop.run("status").all
    assert "w: its rows were replaced by another target" in told
    assert "`lakewright job weekly truncate -t w --yes`" in told
