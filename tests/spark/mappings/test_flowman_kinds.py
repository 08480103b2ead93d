"""Kinds of Flowman's mappings, by one small project and the rows that come out (E14)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.contexts import make_context
from tests.projects import make_workspace
from tests.sessions import same
from tests.spark.relations.relations import Row, rows_by_name

from lakewright.errors import TargetError
from lakewright.plan.phase import Phase
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODEL = """
relations:
  out: {kind: file, format: json, location: out}
mappings:
  people:
    kind: values
    columns: {id: int, boss: int, name: string, text: string, tags: array<string>,
              at: "struct<city: string, pos: struct<x: int, y: int>>"}
    records:
      - [1, null, Ann, '{"a": 1, "b": "x"}', [r, g], {city: Bonn, pos: {x: 1, y: 2}}]
      - [2, 1, Bob, "{'a': 2}", [r], {city: Rome, pos: {x: 3, y: 4}}]
      - {id: 3, boss: 2, name: Cleo, text: 'no json', tags: []}
  scalars: {kind: values, columns: {name: string}, records: [abc, 1]}
  mocked: {kind: mock, mapping: tags, records: [[1, x, more], {id: 2, other: y}, 3]}
  names: {kind: select, input: people, columns: {a: name, b: name}, filter: "a <> 'Bob'"}
  both: {kind: schema, input: names, columns: {a: char(4), b: varchar(3)}}
  free: {kind: schema, input: names, columns: {a: char(4), b: varchar(3)}, charVarcharPolicy: ignore}
  padded: {kind: schema, input: names, columns: {a: char(4), b: varchar(3)}, charVarcharPolicy: PAD}
  cut: {kind: schema, input: names, columns: {a: char(3), b: varchar(3)}, charVarcharPolicy: TRUNCATE}
  nothing: {kind: empty, columns: {id: int, day: date}}
  json:
    kind: extractJson
    input: people
    column: text
    schema: {fields: [{name: a, type: int}, {name: b, type: string}]}
  broken: {kind: alias, input: "json:error"}
  unpacked:
    kind: unpackJson
    input: people
    columns: {name: text, alias: found, schema: {fields: {name: a, type: int}}}
    filter: id < 3
  unpacked_a: {kind: select, input: unpacked, columns: {id: id, a: found.a}}
  few: {kind: coalesce, input: people, partitions: 1}
  even: {kind: rebalance, input: people, partitions: 3}
  by_name: {kind: repartition, input: people, columns: name, partitions: 2, sort: true}
  watched: {kind: observe, input: people, measures: {people: count(*), top: max(id)}, filter: id > 1}
  named: {kind: project, input: watched, columns: [id, name]}
  chosen: {kind: case, cases: [{condition: "false", input: few}, {condition: "true", input: nothing}]}
  groups:
    kind: groupedAggregate
    input: people
    aggregations: {n: count(*), top: max(id)}
    groups:
      by_boss: {dimensions: boss, aggregations: n, filter: id > 1}
      all: {having: n > 2}
      main: {having: n > 2}
  by_boss: {kind: alias, input: "groups:by_boss"}
  all: {kind: alias, input: "groups:all"}
  whole: {kind: alias, input: groups}
  factorial:
    kind: recursiveSql
    sql: SELECT 0 AS n, 1 AS fact UNION ALL SELECT n + 1, (n + 1) * fact FROM __this__ WHERE n < 5
  endless: {kind: recursiveSql, maxIterations: 3, sql: SELECT 0 AS n UNION ALL SELECT n + 1 FROM __this__}
  tops:
    kind: iterativeSql
    input: bosses
    sql: SELECT t.id, coalesce(b.top, t.top) AS top FROM __this__ t LEFT JOIN bosses b ON t.top = b.id
  bosses: {kind: select, input: people, columns: {id: id, top: "coalesce(boss, id)"}}
  assembled:
    kind: assemble
    input: people
    columns:
      - {kind: append, keep: [ID, at.pos.x]}
      - {kind: flatten, path: at, drop: pos.x, prefix: at_}
      - {kind: rename, columns: {who: name, gone: nobody}}
      - {kind: lift, path: at, columns: [city, pos.y]}
      - {kind: nest, name: place, path: at, keep: city}
      - {kind: struct, name: both, columns: [{kind: rename, columns: {n: name}}, {kind: lift, columns: id}]}
  tags: {kind: assemble, input: people, columns: [{keep: id}, {kind: explode, path: tags, name: tag}]}
  unit:
    kind: unit
    mappings:
      people: {kind: select, input: few, columns: {name: upper(name)}}
      main: {kind: sql, sql: "SELECT name FROM people WHERE name < 'B'"}
  inner: {kind: alias, input: "unit:people"}
  provided: {kind: provided, table: flowman_kinds.t}
  hive: {kind: readHive, database: flowman_kinds, table: t, columns: {id: string}, filter: id > 1}
targets:
  out: {kind: relation, relation: out, mapping: named}
"""

EXPECTED: dict[str, list[Row]] = {
    # E8: the key `charVarcharPolicy` decides about lengths.
    "both": [("Ann ", "Ann"), ("Cleo", "Cle")],
    "free": [("Ann", "Ann"), ("Cleo", "Cleo")],
    "padded": [("Ann ", "Ann"), ("Cleo", "Cleo")],
    "cut": [("Ann", "Ann"), ("Cle", "Cle")],
    "nothing": [],
    # E5: a scalar is a row with one column; what a mock's mapping has no column for is dropped.
    "scalars": [("1",), ("abc",)],
    "mocked": [("1", "x"), ("2", None), ("3", None)],
    "json": [("1", "x"), ("2", None)],
    "broken": [("no json",)],
    "unpacked_a": [("1", "1"), ("2", "2")],
    "chosen": [],
    "by_boss": [("1", "1"), ("2", "1")],
    "all": [("3", "3")],
    "whole": [("3", "3")],
    "factorial": [("0", "1"), ("1", "1"), ("2", "2"), ("3", "6"), ("4", "24"), ("5", "120")],
    "tops": [("1", "1"), ("2", "1"), ("3", "1")],
    "tags": [("1", "g"), ("1", "r"), ("2", "r")],
    "unit": [("ANN",)],
    "inner": [("ANN",), ("BOB",), ("CLEO",)],
    "provided": [("1",), ("2",)],
    "hive": [("2",)],
}


@pytest.mark.jvm
def test_rows_are_in_as_many_partitions_as_declared(tmp_path: Path, spark: SparkSession) -> None:
    workspace = make_workspace(tmp_path, MODEL, sessions=same(spark))
    partitions = {name: workspace.frame(name).rdd.getNumPartitions() for name in ("few", "even", "by_name")}
    assert partitions == {"few": 1, "even": 3, "by_name": 2}


def test_each_kind_gives_its_rows(tmp_path: Path, spark: SparkSession) -> None:
    """E14: what migrating projects use."""
    workspace = make_workspace(tmp_path, MODEL, sessions=same(spark))
    spark.sql("CREATE DATABASE flowman_kinds")
    try:
        spark.sql("CREATE TABLE flowman_kinds.t USING parquet AS SELECT explode(array(1, 2)) AS id")
        found = rows_by_name({name: workspace.frame(name) for name in EXPECTED})
    finally:
        spark.sql("DROP DATABASE flowman_kinds CASCADE")
    assert found == EXPECTED

    assembled = workspace.frame("assembled")
    assert assembled.schema.simpleString() == (
        "struct<id:int,at:struct<pos:struct<x:int>>,at_city:string,at_pos_y:int,who:string,city:string,y:int,"
        "place:struct<city:string>,both:struct<n:string,id:int>>"
    )
    assert [row.y for row in assembled.orderBy("id").collect()] == [2, 4, None]
    assert assembled.where("id = 3").first().at is None  # type: ignore[union-attr]
    with pytest.raises(TargetError, match="still changes after 3 runs"):
        workspace.frame("endless")


def test_what_is_observed_is_reported_by_the_target_that_writes_it(
    tmp_path: Path, spark: SparkSession
) -> None:
    """E14: metrics of an `observe` mapping, with its own labels; they count all rows before its filter."""
    workspace = make_workspace(tmp_path, MODEL, sessions=same(spark))
    target = Target.named(workspace, "out")
    metrics = target.execute(make_context(workspace), Phase.BUILD).metrics
    labels = {"category": "mapping", "kind": "observe", "name": "watched"}
    assert metrics == {
        "target_records": 2,
        "people": [{"value": 3, "labels": labels}],
        "top": [{"value": 3, "labels": labels}],
    }
    assert workspace.observations == {}
