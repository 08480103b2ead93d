"""Values of CSV and JSON files of `file` relations: converted to the declared types, or named as misfits."""

from __future__ import annotations

import json
from datetime import datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.projects import make_project, make_workspace
from tests.sessions import same
from tests.spark.relations.relations import failed, misfit, rows, stored
from tests.spark.strategies.bench import pa, pq

from lakewright.errors import TargetError
from lakewright.lake.lake import Lake
from lakewright.relations.relation import OutputMode
from lakewright.schema.fault import Reason
from lakewright.spark.conf import SessionSettings
from lakewright.transform.fault_words import fault_of
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


FIELDS = """
        - {name: id, type: string}
        - {name: d, type: date}
        - {name: t, type: timestamp}
        - {name: n, type: double}
        - {name: i, type: integer}
        - {name: p, type: "decimal(5,2)"}
        - {name: b, type: boolean}
        - {name: s, type: "struct<at: date, n: array<int>, x: string>"}
"""
TYPES = [
    "string", "date", "timestamp", "double", "int", "decimal(5,2)", "boolean",
    "struct<at:date,n:array<int>,x:string>",
]  # fmt: skip
VALUES = f"""
relations:
  csv:
    kind: file
    location: csv
    options: {{header: true, nullValue: "-"}}
    schema:
      fields: {FIELDS}
  json:
    kind: file
    format: json
    location: json
    schema:
      fields: {FIELDS}
  formats:
    kind: file
    location: formats
    options: {{header: true, dateFormat: dd.MM.yyyy, timestampFormat: "dd.MM.yyyy HH:mm"}}
    schema:
      fields: [{{name: d, type: date}}, {{name: t, type: timestamp}}, {{name: e, type: date, format: yyMMdd}}]
  sparks:
    kind: file
    location: sparks
    options: {{header: true, nanValue: none, positiveInf: max}}
    schema: {{fields: [{{name: n, type: double}}, {{name: d, type: date}}]}}
"""


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def values(tmp_path: Path, spark: SparkSession) -> Workspace:
    made = make_project(tmp_path, VALUES)
    settings = made.lake.model_copy(update={"timezone": "Europe/Berlin"})
    lake = Lake(settings, SessionSettings(tmp_path / "state"), sessions=same(spark))
    return Workspace(made, made.scope.child({}), lake)


def test_values_are_read_as_they_are_written(values: Workspace, tmp_path: Path) -> None:
    """Rules of reading, "Two steps": one conversion for slices of entities and for file relations alike."""
    write(
        tmp_path / "csv/a.csv",
        "id,d,t,n,i,p,b,s\n"
        '1,2024-05-01,2024-05-01 12:00:00,1e3,7,1.50,yes,"{""at"": ""2024-05-01"", ""n"": [1], ""x"": 1}"\n'
        "2,-,2024-05-01T12:00:00Z,NaN,-,-,0,-\n",
    )
    write(
        tmp_path / "json/a.json",
        '{"id": 1.50, "d": "2024-05-01", "t": "2024-05-01 12:00:00", "n": 1e3, "i": 7.0, "p": 1.5, "b": "y",'
        ' "s": {"at": "2024-05-01", "n": [1, "2", 3.0], "x": 1.50}}\n'
        '{"id": "2", "d": null, "t": "2024-05-01T12:00:00Z", "n": "NaN", "b": 0}\n',
    )
    shown = "id", "d", "cast(t as string) t", "n", "i", "p", "b", "to_json(s) s"
    read = values.relation("csv").read(values)
    assert [kind for _, kind in read.dtypes] == TYPES
    assert rows(read.selectExpr(*shown)) == [
        ("1", "2024-05-01", "2024-05-01 10:00:00", "1000.0", "7", "1.50", "true",
         '{"at":"2024-05-01","n":[1],"x":"1"}'),
        ("2", None, "2024-05-01 12:00:00", "NaN", None, None, "false", None),
    ]  # fmt: skip
    read = values.relation("json").read(values)
    assert read.dtypes == values.relation("csv").read(values).dtypes
    assert rows(read.selectExpr(*shown)) == [
        ("1.5", "2024-05-01", "2024-05-01 10:00:00", "1000.0", "7", "1.50", "true",
         '{"at":"2024-05-01","n":[1,2,3],"x":"1.5"}'),
        ("2", None, "2024-05-01 12:00:00", "NaN", None, None, "false", None),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_times_are_written_with_all_their_digits(tmp_path: Path, spark: SparkSession, kind: str) -> None:
    fields = "[{name: t, type: timestamp}, {name: n, type: timestamp_ntz}]"
    r = f"{{kind: file, format: {kind}, location: r, schema: {{fields: {fields}}}}}"
    made = make_workspace(tmp_path, f"relations: {{r: {r}}}", sessions=same(spark))
    at = "2024-05-01 12:00:00.123456"
    frame = made.spark.sql(f"SELECT timestamp'{at}Z' t, timestamp_ntz'{at}' n")
    stored(made, "r").write(made, frame, partition={}, mode=OutputMode.OVERWRITE)
    shown = made.relation("r").read(made).selectExpr("cast(t as string) t", "cast(n as string) n")
    assert rows(shown) == [(at, at)]


def test_values_are_not_guessed(values: Workspace, tmp_path: Path) -> None:
    wrong = {"d": "45352", "t": "10:15", "n": "12D", "i": "7.5", "p": "1.239"}
    write(tmp_path / "csv/a.csv", f"id,{','.join(wrong)}\n1,{','.join(wrong.values())}\n")
    write(
        tmp_path / "json/a.json", json.dumps({"id": "1", **wrong, "t": 1714557600000, "s": {"n": [1, 2.5]}})
    )
    for name, columns in {"csv": wrong, "json": {"d": "45352", "t": "1714557600000"}}.items():
        read = values.relation(name).read(values)
        assert rows(read, "id") == [("1",)]
        faults = [fault_of(failed(read.select(column))) for column in columns]
        assert [(each.column, each.value) for each in faults if each is not None] == list(columns.items())
    found = misfit(values, "json", "s")
    assert (found.column, found.type, found.value) == ("s.n", "int", "2.5")
    assert found.place == f"relation 'json', {tmp_path}/json/a.json"


def test_options_about_values(values: Workspace, tmp_path: Path) -> None:
    write(tmp_path / "formats/a.csv", "d,t,e\n01.05.2024,01.05.2024 12:00,240502\n")
    write(tmp_path / "sparks/a.csv", "n,d\nnone,2024-05-01\nmax,\n1.5,\n")
    read = values.relation("formats").read(values).selectExpr("d", "cast(t as string)", "e")
    assert rows(read) == [("2024-05-01", "2024-05-01 10:00:00", "2024-05-02")]
    assert rows(values.relation("sparks").read(values)) == [
        ("1.5", None),
        ("Infinity", None),
        ("NaN", "2024-05-01"),
    ]
    write(tmp_path / "formats/a.csv", "d,t,e\n2024-05-01,,\n")
    found = misfit(values, "formats")
    assert (found.column, found.reason) == ("d", Reason.NOT_WRITTEN_SO)
    relation = stored(values, "formats")
    made = values.spark.sql("SELECT date'2024-05-01' d, timestamp'2024-05-01 10:00:00' t, null e")
    relation.write(values, made, partition={}, mode=OutputMode.OVERWRITE)
    assert rows(relation.read(values), "d", "t") == [("2024-05-01", "2024-05-01 10:00:00")]


ALIKE = """
relations:
  parts: {kind: file, format: parquet, location: parts}
  orc: {kind: file, format: orc, location: orc}
  json: {kind: file, format: json, location: json}
  lines: {kind: file, format: json, location: lines, options: {multiLine: true}}
  folders: {kind: file, format: parquet, location: folders}
  divided:
    kind: file
    format: parquet
    location: folders
    partitions: [{name: day, type: date}]
    schema: {fields: [{name: n, type: int}]}
  typed: {kind: file, format: parquet, location: parts, schema: {fields: [{name: n, type: smallint}]}}
  patterned:
    kind: file
    format: json
    location: years
    pattern: "${year}/*.json"
    partitions: [{name: year, type: integer}]
    schema: {fields: [{name: n, type: int}]}
"""


@pytest.fixture
def alike(tmp_path: Path, spark: SparkSession) -> Workspace:
    return make_workspace(tmp_path, ALIKE, sessions=same(spark))


def put(file: Path, **columns: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)


def test_parts_of_one_relation_may_differ(alike: Workspace, tmp_path: Path) -> None:
    """Rules of reading, "Inference": for file relations, too."""
    put(
        tmp_path / "parts/a.parquet",
        n=pa.array([1], pa.int32()),
        at=pa.array([time(10, 15)], pa.time64("us")),
    )
    put(tmp_path / "parts/b.parquet", n=pa.array([2**40], pa.int64()), more=pa.array([None], pa.null()))
    read = alike.relation("parts").read(alike)
    assert read.dtypes == [("n", "bigint"), ("at", "string"), ("more", "string")]
    assert rows(read) == [("1", "10:15:00", None), (str(2**40), None, None)]
    found = misfit(alike, "typed")
    assert (found.column, found.type, found.value) == ("n", "smallint", str(2**40))
    assert found.place.startswith("relation 'typed', ")
    put(tmp_path / "parts/c.parquet", n=pa.array([datetime(2024, 1, 1)], pa.timestamp("us")))
    with pytest.raises(TargetError, match="column 'n' is of type") as raised:
        alike.relation("parts").read(alike)
    assert raised.value.remedy == "Deliver the files with one type for it."
    frame = alike.spark.range(1).selectExpr("int(id) as n")
    frame.write.orc(str(tmp_path / "orc"))
    frame.selectExpr("double(n) + 0.5 as n").write.mode("append").orc(str(tmp_path / "orc"))
    assert rows(alike.relation("orc").read(alike)) == [("0.0",), ("0.5",)]


def test_json_without_a_schema_loses_nothing(alike: Workspace, tmp_path: Path) -> None:
    write(
        tmp_path / "json/a.json",
        '[{"id": 1, "n": 0.123456789012345678, "x": 7}, {"id": 2, "x": "a", "e": {}}]\n',
    )
    write(tmp_path / "json/day=007/a.json", '{"id": 3, "Id": null, "x": [1, 2]}\n')
    read = alike.relation("json").read(alike)
    assert dict(read.dtypes) == {
        "e": "string", "id": "bigint", "n": "decimal(18,18)", "x": "string", "day": "string",
    }  # fmt: skip
    assert rows(read, "id", "n", "x", "day") == [
        ("1", "0.123456789012345678", "7", None),
        ("2", None, "a", None),
        ("3", None, "[1,2]", "007"),
    ]
    (noted,) = alike.notes.take()
    assert noted.startswith("relation 'json': the column x has values of several kinds")
    write(tmp_path / "json/b.json", '{"id": 1} {"id": 2}\n')
    with pytest.raises(TargetError, match="1 bad record"):
        alike.relation("json").read(alike)
    write(tmp_path / "lines/a.json", '[\n{"id": 1,\n"t": "a"},\n{"id": 2}\n]\n')
    assert rows(alike.relation("lines").read(alike)) == [("1", "a"), ("2", None)]


def test_values_of_folders_are_texts_or_as_declared(alike: Workspace, tmp_path: Path) -> None:
    for name in ("day=2024-05-01/x=007", "day=2024-05-02/x=A%2F1/more"):
        put(tmp_path / f"folders/{name}/a.parquet", n=pa.array([1], pa.int32()))
    read = alike.relation("folders").read(alike)
    assert rows(read) == [("1", "2024-05-01", "007"), ("1", "2024-05-02", "A/1")]
    divided = alike.relation("divided").read(alike)
    assert divided.dtypes == [("n", "int"), ("day", "date")]
    plan = divided.where("day = date'2024-05-02'")
    assert rows(plan) == [("1", "2024-05-02")]
    counted = plan._jdf.queryExecution().executedPlan().toString()
    assert "file_path" in counted
    assert len(stored(alike, "divided").read(alike, [{"day": "2024-05-01"}]).inputFiles()) == 1
    put(tmp_path / "folders/day=45352/a.parquet", n=pa.array([1], pa.int32()))
    found = misfit(alike, "divided")
    assert (found.column, found.type, found.value) == ("day", "date", "45352")
    write(tmp_path / "years/2024/a.json", '{"n": 1}\n')
    assert rows(alike.relation("patterned").read(alike)) == [("1", "2024")]
    write(tmp_path / "years/12D/a.json", '{"n": 1}\n')
    assert misfit(alike, "patterned").value == "12D"
