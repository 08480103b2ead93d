"""Files and Delta tables written and read by their relations."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.projects import make_workspace
from tests.reading import rows_of_files
from tests.sessions import same
from tests.spark.relations.relations import rows, stored

from lakewright.errors import TargetError
from lakewright.lake.spark_errors import spark_errors
from lakewright.plan.observation import Answer
from lakewright.relations import delta
from lakewright.relations.relation import OutputMode, read_mode
from lakewright.schema.fault import Fault
from lakewright.spark.jvm import full_text
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORAGE = """
relations:
  flat:
    kind: file
    format: parquet
    location: data/flat
    schema: {fields: [{name: id, type: integer}, {name: name, type: varchar(3)}]}
  defaults:
    kind: file
    format: json
    location: data/defaults
    schema: {fields: [{name: id, type: integer}, {name: n, type: "decimal(5,1)", default: 1.5}]}
  divided_file:
    kind: file
    format: csv
    location: data/divided
    options: {header: true}
    partitions: [{name: day, type: date}]
    schema: {fields: [{name: id, type: integer}, {name: name, type: string}]}
  divided_delta:
    kind: delta
    location: data/delta
    mergeKey: id
    partitions: [{name: day, type: date}]
    schema: {fields: [{name: id, type: integer}, {name: name, type: string}]}
  inferred: {kind: delta, location: data/inferred}
  narrow:
    kind: delta
    location: data/inferred
    mergeKey: id
    schema: {fields: [{name: NAME, type: string}, {name: id, type: integer}, {name: later, type: string}]}
  nested:
    kind: delta
    location: data/nested
    schema:
      fields:
        - {name: s, type: "struct<b: string, a: int, more: double>"}
        - {name: l, type: "array<struct<y: decimal(5,2), x: varchar(3)>>"}
        - {name: m, type: "map<string, struct<v: int>>"}
mappings:
  given:
    kind: values
    columns:
      s: "struct<a: string, B: string, lost: int>"
      l: "array<struct<x: string, y: string>>"
      m: "map<string, struct<w: int, v: string>>"
    records:
      - [{a: "1", B: x, lost: 7}, [{x: q, y: "1.25"}, null], {k: {w: 1, v: "2"}}]
      - [null, null, null]
  cast: {kind: cast, input: given, columns: {s: "struct<b: string, a: int>"}}
  wrong:
    kind: values
    columns: {s: "struct<a: string>", l: "array<struct<x: string>>"}
    records: [[{a: "1"}, [{x: ab}, {x: abcd}]]]
"""


@pytest.fixture
def workspace(tmp_path: Path, spark: SparkSession) -> Workspace:
    return make_workspace(tmp_path, STORAGE, sessions=same(spark))


@pytest.fixture
def write(workspace: Workspace) -> Callable[..., int]:
    def write(name: str, query: str, mode: str = "OVERWRITE", **partition: str) -> int:
        frame = workspace.spark.sql(query)
        relation = stored(workspace, name)
        return relation.write(workspace, frame, partition=partition, mode=read_mode(mode)).rows

    return write


def test_rows_become_the_declared_columns(workspace: Workspace, write: Callable[..., int]) -> None:
    relation = stored(workspace, "flat")
    relation.create(workspace)
    assert relation.observe(workspace).filled is Answer.NO
    assert rows(relation.read(workspace)) == []
    assert write("flat", "SELECT 'abc  ' AS NAME, '7' AS id, 1 AS other") == 1
    assert rows(relation.read(workspace)) == [("7", "abc")]
    assert write("flat", "SELECT 8 AS id", "append") == 1
    assert rows(relation.read(workspace)) == [("7", "abc"), ("8", None)]
    assert write("flat", "SELECT 1 AS id WHERE false") == 0
    assert relation.observe(workspace).filled is Answer.NO
    assert rows(relation.read(workspace)) == []
    relation.destroy(workspace)
    assert relation.observe(workspace).exists is Answer.NO
    with pytest.raises(TargetError, match="there is nothing at"):
        relation.read(workspace)


def test_a_column_that_rows_lack_has_its_default(workspace: Workspace, write: Callable[..., int]) -> None:
    write("defaults", "SELECT 1 AS id")
    write("defaults", "SELECT 2 AS id, CAST(NULL AS STRING) AS n", "append")
    assert rows(stored(workspace, "defaults").read(workspace)) == [("1", "1.5"), ("2", None)]


@pytest.mark.parametrize("name", ["flat", pytest.param("inferred", marks=pytest.mark.nightly)])
def test_readers_never_see_a_part_of_a_write(
    workspace: Workspace,
    write: Callable[..., int],
    reading: Callable[[Callable[[], int]], AbstractContextManager[list[int]]],
    name: str,
) -> None:
    folder = workspace.project.basedir / "data" / name
    many = "SELECT CAST(id AS INT) AS id, 'x' AS name FROM range(0, 1000, 1, 2)"
    write(name, many)
    look = partial(rows_of_files if name == "flat" else rows_of_delta, folder)
    with reading(look) as seen:
        for _ in range(3):
            write(name, many)
    assert set(seen) == {1000}


def rows_of_delta(folder: Path) -> int:
    return len(DeltaTable(folder).to_pandas())


@pytest.mark.parametrize("name", ["divided_file", "divided_delta"])
def test_modes_touch_the_partitions_that_they_should(
    workspace: Workspace, write: Callable[..., int], name: str
) -> None:
    relation = stored(workspace, name)
    relation.create(workspace)
    first, second = {"day": "2022-01-01"}, {"day": "2022-01-02"}
    assert write(name, "SELECT 1 AS id, 'a' AS name, 'ignored' AS day", **first) == 1
    assert relation.observe(workspace, first).filled is Answer.YES
    assert relation.observe(workspace, second).filled is Answer.NO
    write(name, "SELECT 2 AS id, 'b' AS name", **second)
    write(name, "SELECT 3 AS id, 'c' AS name", "append", **second)
    write(name, "SELECT 9 AS id, 'z' AS name", **first)
    assert rows(relation.read(workspace)) == [
        ("2", "b", "2022-01-02"),
        ("3", "c", "2022-01-02"),
        ("9", "z", "2022-01-01"),
    ]
    assert rows(relation.read(workspace, [first])) == [("9", "z", "2022-01-01")]
    write(name, "SELECT 4 AS id, 'd' AS name, DATE'2022-01-01' AS day", "overwrite_dynamic")
    assert [row[0] for row in rows(relation.read(workspace))] == ["2", "3", "4"]
    relation.truncate(workspace, second)
    assert [row[0] for row in rows(relation.read(workspace))] == ["4"]
    write(name, "SELECT 5 AS id, 'e' AS name, DATE'2022-01-03' AS day")
    assert rows(relation.read(workspace)) == [("5", "e", "2022-01-03")]
    relation.truncate(workspace)
    assert relation.observe(workspace).filled is Answer.NO
    assert relation.observe(workspace).exists is Answer.YES
    relation.destroy(workspace)
    assert relation.observe(workspace).exists is Answer.NO


def test_an_update_replaces_rows_of_the_same_key(workspace: Workspace, write: Callable[..., int]) -> None:
    day = {"day": "2022-01-01"}
    write("divided_delta", "SELECT 1 AS id, 'a' AS name UNION ALL SELECT 2, 'b'", **day)
    assert write("divided_delta", "SELECT 2 AS id, 'B' AS name UNION ALL SELECT 3, 'c'", "update", **day) == 2
    found = rows(stored(workspace, "divided_delta").read(workspace))
    assert [row[:2] for row in found] == [("1", "a"), ("2", "B"), ("3", "c")]


def test_a_table_without_schema_takes_that_of_its_rows(
    workspace: Workspace, write: Callable[..., int]
) -> None:
    relation = stored(workspace, "inferred")
    relation.create(workspace)
    assert relation.observe(workspace).exists is Answer.NO
    write("inferred", "SELECT 1 AS id, 'x' AS name")
    write("inferred", "SELECT 2 AS id", "append")
    assert rows(relation.read(workspace)) == [("1", "x"), ("2", None)]
    write("inferred", "SELECT 'y' AS other")
    assert rows(relation.read(workspace)) == [("y",)]


@pytest.mark.nightly  # test_rows_become_the_declared_columns
def test_columns_that_the_schema_does_not_declare_are_not_read(
    workspace: Workspace, write: Callable[..., int]
) -> None:
    """As Flowman's relations; rows that are updated keep them."""
    write("inferred", "SELECT 1 AS id, 'a' AS name, 'x' AS other UNION ALL SELECT 2, 'b', 'y'")
    read = stored(workspace, "narrow").read(workspace)
    assert (read.columns, rows(read)) == (["id", "name"], [("1", "a"), ("2", "b")])
    write("narrow", "SELECT 2 AS id, 'c' AS name", "UPDATE")
    assert rows(stored(workspace, "inferred").read(workspace), "id", "name", "other") == [
        ("1", "a", "x"),
        ("2", "c", "y"),
    ]


@pytest.mark.nightly  # modes are tested above; this saves a query
def test_what_replaces_nothing_is_added(
    workspace: Workspace, write: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first write of a partition needs no look at the table's files; unless others write meanwhile."""
    folder = Path(workspace.resolve_location("data/delta"))
    for day in ("2022-01-01", "2022-01-02", "2022-01-02"):
        assert write("divided_delta", "SELECT 1 AS id, 'a' AS name", day=day) == 1
    modes = [entry["operationParameters"].get("mode") for entry in DeltaTable(folder).history()]
    assert modes[:3] == ["Overwrite", "Append", "Append"]

    def late(*arguments: Any, **keywords: Any) -> int:
        monkeypatch.undo()
        day = date(2022, 1, 3)
        write_deltalake(folder, pandas.DataFrame({"id": [9], "name": ["b"], "day": [day]}), mode="append")
        return save(*arguments, **keywords)

    save = delta.TableWrite._save
    monkeypatch.setattr(delta.TableWrite, "_save", late)
    assert write("divided_delta", "SELECT 2 AS id, 'c' AS name", day="2022-01-03") == 1
    found = rows(stored(workspace, "divided_delta").read(workspace, [{"day": "2022-01-03"}]))
    assert found == [("2", "c", "2022-01-03")]


def test_fields_of_structs_are_written_by_name_at_any_depth(workspace: Workspace) -> None:
    relation = stored(workspace, "nested")
    summary = relation.write(workspace, workspace.frame("given"), partition={}, mode=OutputMode.OVERWRITE)
    assert summary.left_out == ("s.lost", "m.w")
    written = [row.asDict(recursive=True) for row in relation.read(workspace).collect()]
    assert sorted(written, key=lambda row: row["s"] is None) == [
        {
            "s": {"b": "x", "a": 1, "more": None},
            "l": [{"y": Decimal("1.25"), "x": "q"}, None],
            "m": {"k": {"v": 2}},
        },
        {"s": None, "l": None, "m": None},
    ]
    cast = [row.s for row in workspace.frame("cast").collect()]
    assert {None if each is None else (each.b, each.a) for each in cast} == {None, ("x", 1)}
    with pytest.raises(spark_errors()) as raised:
        relation.write(workspace, workspace.frame("wrong"), partition={}, mode=OutputMode.APPEND)
    fault = Fault.raised(full_text(raised.value))
    assert fault is not None
    assert (fault.column, fault.value) == ("l.x", "abcd")
