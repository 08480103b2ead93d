"""CSV and JSON files of `file` relations: each by its own columns, and nothing is read as null silently."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.projects import make_workspace
from tests.sessions import same
from tests.spark.relations.relations import failed, misfit, rows, stored

from lakewright.errors import MigrationError, TargetError
from lakewright.lake.spark_errors import spark_errors
from lakewright.relations.relation import OutputMode
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = """
relations:
  declared:
    kind: file
    format: csv
    location: csv
    options: {header: true}
    partitions: [{name: day, type: date}]
    schema: {fields: [{name: id, type: integer}, {name: price, type: double}]}
  plain: {kind: file, format: csv, location: csv, options: {header: true}}
  patterned:
    kind: file
    format: csv
    location: csv
    pattern: "day=${day}/*.csv"
    options: {header: true}
    partitions: [{name: day, type: date}]
    schema: {fields: [{name: id, type: integer}, {name: price, type: double}]}
  lenient:
    kind: file
    format: csv
    location: bad
    options: {header: true, mode: PERMISSIVE}
    schema: {fields: [{name: id, type: integer}, {name: price, type: double}]}
  strict:
    kind: file
    format: csv
    location: bad
    options: {header: true}
    schema: {fields: [{name: id, type: integer}, {name: price, type: double}]}
  marked:
    kind: file
    format: csv
    location: bad
    options: {header: true}
    schema:
      fields:
        - {name: id, type: integer}
        - {name: price, type: double}
        - {name: _corrupt_record, type: string}
  json: {kind: file, format: json, location: json, schema: {fields: [{name: id, type: integer}]}}
  round:
    kind: file
    format: csv
    location: round
    options: {header: true}
    schema: {fields: [{name: id, type: integer}, {name: text, type: string}]}
  renamed:
    kind: file
    format: json
    location: renamed
    schema: {fields: [{name: id, type: integer}, {name: amount, type: double, renamedFrom: amt}]}
  renamed_csv:
    kind: file
    format: csv
    location: renamed_csv
    options: {header: true}
    schema: {fields: [{name: id, type: integer}, {name: amount, type: double, renamedFrom: amt}]}
  guessed:
    kind: file
    format: csv
    location: renamed_csv
    options: {header: true}
    schema: {fields: [{name: id, type: integer}, {name: total, type: double}]}
  typed:
    kind: file
    format: json
    location: typed
    partitions: [{name: code, type: string}, {name: n, type: int}]
  plain_json: {kind: file, format: json, location: plain_json}
  by_code: {kind: file, format: json, location: typed, partitions: [{name: code, type: string}]}
  headless:
    kind: file
    format: csv
    location: headless
    schema: {fields: [{name: id, type: integer}, {name: name, type: string}, {name: price, type: double}]}
"""


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def workspace(tmp_path: Path, spark: SparkSession) -> Workspace:
    write(tmp_path / "csv/day=2024-01-01/a.csv", "id,price\n1,1.5\n")
    write(tmp_path / "csv/day=2024-01-02/b.csv", "price,id,more\n2.5,2,x\n")
    write(tmp_path / "csv/day=2024-01-03/c.csv", "id\n3\n")
    write(tmp_path / "csv/day=2024-01-03/empty.csv", "")
    write(tmp_path / "bad/a.csv", "id,price\n1,1.5\n2,N/A\n")
    write(tmp_path / "json/a.json", '{"id": 1}\n{"id": "x"}\n')
    write(tmp_path / "headless/a.csv", "1,a,1.5\n")
    write(tmp_path / "headless/b.csv", "2,b\n")
    return make_workspace(tmp_path, FILES, sessions=same(spark))


def failure(workspace: Workspace, name: str) -> str:
    return failed(workspace.relation(name).read(workspace)).message


def test_files_with_other_headers_are_read_by_name(workspace: Workspace) -> None:
    declared = [(1, 1.5, "2024-01-01"), (2, 2.5, "2024-01-02"), (3, None, "2024-01-03")]
    for name in ("declared", "patterned"):
        frame = workspace.relation(name).read(workspace)
        assert [(row.id, row.price, str(row.day)) for row in frame.orderBy("id").collect()] == declared
        assert frame.columns == ["id", "price", "day"]
    read = workspace.relation("declared").read(workspace, [{"day": "2024-01-02"}])
    assert [tuple(row)[:2] for row in read.collect()] == [(2, 2.5)]
    plain = workspace.relation("plain").read(workspace).orderBy("id").collect()
    assert [(row.id, row.price, row.more) for row in plain] == [
        ("1", "1.5", None),
        ("2", "2.5", "x"),
        ("3", None, None),
    ]


def test_a_file_without_a_header_may_have_fewer_columns(workspace: Workspace) -> None:
    assert rows(workspace.relation("headless").read(workspace)) == [("1", "a", "1.5"), ("2", "b", None)]


def test_a_value_that_does_not_fit_fails_the_query_unless_the_project_permits_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    found = misfit(workspace, "strict")
    assert (found.column, found.type, found.value) == ("price", "double", "N/A")
    assert found.place == f"relation 'strict', {tmp_path}/bad/a.csv"
    found = misfit(workspace, "json")
    assert (found.column, found.type, found.value) == ("id", "int", "x")
    assert found.place == f"relation 'json', {tmp_path}/json/a.json"
    assert rows(workspace.relation("lenient").read(workspace)) == [("1", "1.5"), ("2", None)]
    marked = workspace.relation("marked").read(workspace).orderBy("id").collect()
    assert [row._corrupt_record for row in marked] == [None, "2,N/A"]


@pytest.mark.parametrize(
    "texts",
    [
        ["a\nb", "a\r\nb", 'x"y', '"q"', "c,d", " pad ", "back\\", 'b\\"q', '""', "\n", "tab\t", None, "é'"],
        ["no line breaks", " pad ", 'x"y'],
    ],
)
def test_csv_files_are_read_as_they_were_written(workspace: Workspace, texts: list[str | None]) -> None:
    relation = stored(workspace, "round")
    frame = workspace.spark.createDataFrame(list(enumerate(texts)), "id int, text string").coalesce(1)
    relation.write(workspace, frame, partition={}, mode=OutputMode.OVERWRITE)
    assert [row.text for row in relation.read(workspace).orderBy("id").collect()] == texts


def test_quotes_that_are_not_closed_or_doubled_are_named(workspace: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "round/a.csv"
    write(file, 'id,text\n1,"open\n2,b\n')
    with pytest.raises(TargetError) as raised:
        workspace.relation("round").read(workspace)
    assert f"can't be read: {file}, line 2: a quote" in raised.value.message
    assert "escape" in str(raised.value.remedy)
    file.write_bytes("id,text\n1,größe\n".encode("latin1"))
    with pytest.raises(TargetError, match="line 2: there are bytes that are not UTF-8"):
        workspace.relation("round").read(workspace)
    write(file, 'id,text\n1,"a\\"b"\n2,b\n')
    assert failure(workspace, "round") == f"{file} has a quote inside quotes that is not doubled"


def test_columns_are_found_by_their_former_names(workspace: Workspace, tmp_path: Path) -> None:
    write(tmp_path / "renamed/a.json", '{"id": 1, "amt": 1.5}\n')
    write(tmp_path / "renamed/b.json", '{"id": 2, "amount": 2.5}\n')
    write(tmp_path / "renamed_csv/a.csv", "id,amt\n1,1.5\n")
    assert rows(workspace.relation("renamed").read(workspace)) == [("1", "1.5"), ("2", "2.5")]
    assert rows(workspace.relation("renamed_csv").read(workspace)) == [("1", "1.5")]
    assert workspace.notes.take() == []
    assert rows(workspace.relation("guessed").read(workspace)) == [("1", "1.5")]
    (told,) = workspace.notes.take()
    assert "has amt where the schema has total, which is read by position" in told


def test_partition_columns_have_their_types_without_a_schema(workspace: Workspace) -> None:
    relation = stored(workspace, "typed")
    made = workspace.spark.createDataFrame([("01", "7", 1)], "code string, n string, id int")
    relation.write(workspace, made, partition={}, mode=OutputMode.OVERWRITE)
    read = relation.read(workspace)
    assert read.select("code", "n").dtypes == [("code", "string"), ("n", "int")]
    assert rows(read, "code", "n", "id") == [("01", "7", "1")]
    empty = workspace.spark.createDataFrame([("", "7", 1)], "code string, n string, id int")
    wrong = workspace.spark.createDataFrame([("x", "y", 1)], "code string, n string, id int")
    marked = empty.selectExpr("'__HIVE_DEFAULT_PARTITION__' AS code", "n", "id")
    for frame, told in (
        (empty, "'code' has an empty text"),
        (marked, "'code' has the text __HIVE_DEFAULT_PARTITION__, with which a folder is named for null"),
        (wrong, "not_written_so"),
    ):
        with pytest.raises(spark_errors()) as raised:
            relation.write(workspace, frame, partition={}, mode=OutputMode.OVERWRITE)
        assert told in str(raised.value)
    assert rows(relation.read(workspace), "code") == [("01",)]


def test_a_column_of_nulls_and_the_folders_are_kept(workspace: Workspace) -> None:
    made = workspace.spark.sql("SELECT 1 AS id, CAST(NULL AS string) AS name, 'x' AS code")
    stored(workspace, "plain_json").write(workspace, made, partition={}, mode=OutputMode.OVERWRITE)
    assert workspace.relation("plain_json").read(workspace).columns == ["code", "id", "name"]

    by_code = stored(workspace, "by_code")
    by_code.write(workspace, made, partition={}, mode=OutputMode.OVERWRITE)
    assert not by_code.observe(workspace).changes
    # Spark could not read folders of other columns beside these.
    other = stored(workspace, "typed")
    (change,) = other.observe(workspace).changes
    assert change.description == "partitioned by code, n, but its files are in folders by code"
    with pytest.raises(MigrationError, match="in folders by code"):
        other.migrate(workspace, allow_data_loss=True)
    with pytest.raises(MigrationError, match="in folders by code"):
        other.write(workspace, made.selectExpr("*", "1 AS n"), partition={}, mode=OutputMode.APPEND)
    doubled = made.selectExpr("id", "name AS ID")
    with pytest.raises(TargetError, match="several columns of one name: id, ID"):
        stored(workspace, "plain_json").write(workspace, doubled, partition={}, mode=OutputMode.APPEND)
