"""B3: `validate` evaluates every expression as the jobs would, and parses every SQL text."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

import pytest
from tests.projects import make_project

from lakewright.app import App
from lakewright.usecases.validate_project import Validation, validate_project

MODEL = """
environment:
  - place=PLACE
  - ENTRY
connections:
  c: {settings: {bronze_path: "${destination}", silver_path: "${destination}", bronze_format: csv}}
entities:
  people:
    id: 1
    connection: c
    processtype: merge
    columns:
      - {name: id, fieldroles: [businesskey]}
      - {name: x, expression: "COLUMN"}
    SETTINGS
relations:
  orders:
    kind: file
    format: csv
    location: LOCATION
    schema: {kind: inline, fields: [{name: id, type: long}, {name: amount, type: double}]}
  out: {kind: delta, location: gold/out, partitions: [{name: day, type: date}]}
  kept: {kind: delta, location: gold/kept}
  UNUSED
mappings:
  orders: {kind: relation, relation: orders}
  rows: {kind: sql, sql: "SQL"}
  kept: {kind: filter, input: orders, condition: "CONDITION"}
targets:
  people: {kind: entity, entity: people}
  out: {kind: relation, mapping: rows, relation: out, partition: {day: PARTITION}}
  kept: {kind: relation, mapping: kept, relation: kept}
jobs:
  daily:
    parameters: [{name: day, type: date}, {name: word}, {name: n, type: integer, default: DEFAULT}]
    environment:
      - JOB
    targets: [people, out, kept]
"""
RIGHT = {
    "PLACE": "raw/$day",
    "ENTRY": "e=1",
    "COLUMN": "concat(id, '$word')",
    "SETTINGS": "settings: {}",
    "LOCATION": "$place",
    "UNUSED": "unused: {kind: delta, location: gold/unused}",
    "SQL": "SELECT id, sum(amount) AS total FROM orders WHERE id > ${sql(n)} GROUP BY id",
    "CONDITION": "amount > $n",
    "PARTITION": "$day",
    "DEFAULT": "1",
    "JOB": "month=${LocalDate.format($day, 'yyyy-MM')}",
}


def validation(folder: Path, **changes: str) -> Validation:
    text = MODEL
    for name, value in {**RIGHT, **changes}.items():
        text = text.replace(name, value)
    return validate_project(App(make_project(folder, text), {"XDG_STATE_HOME": str(folder / "state")}))


def texts(folder: Path, **changes: str) -> tuple[list[str], list[str]]:
    found = validation(folder, **changes)
    return [str(fault) for fault in found.errors], [str(fault) for fault in found.warnings]


def test_a_right_project_has_neither_errors_nor_warnings(tmp_path: Path) -> None:
    assert texts(tmp_path) == ([], [])


@pytest.mark.parametrize(
    ("place", "text", "message"),
    [
        (
            "COLUMN",
            "concat(id, '$wrod')",
            "module.yml:14: entity 'people': unknown name 'wrod' in job",
        ),
        (
            "SETTINGS",
            "settings: {bronze_path: $dya}",
            "bronze_path uses the unknown name 'dya' in job",
        ),
        (
            "LOCATION",
            "raw/$dya",
            "relation 'orders': unknown name 'dya' in job 'daily' (did you",
        ),
        (
            "SQL",
            "SELECT id FROM orders WHERE x = '$dya'",
            "mapping 'rows': unknown name 'dya' in job",
        ),
        ("SQL", "SELECT '${day.plusDay(1)}' AS x", "there is no plusDay of a date in expressions"),
        ("SQL", "SELECT '$word' AS x FROM ordrs", "there is no mapping 'ordrs' (did you mean 'orders'?)"),
        ("PARTITION", "$dya", "target 'out': unknown name 'dya' in job 'daily'"),
        ("DEFAULT", "$m", "parameter 'n': unknown name 'm' in job 'daily'"),
        ("JOB", "month=$mnth", "environment entry 'month': unknown name 'mnth' in job 'daily'"),
        ("PLACE", "raw/$dya", "environment entry 'place': unknown name 'dya' in job 'daily'"),
        ("SQL", "selec 1 frm", "mapping 'rows': the SQL 'selec 1 frm' can't be parsed: invalid expression"),
        (
            "SQL",
            "SELECT '$word' AS x FROM rows",
            "module.yml:27: mappings read each other in a cycle: rows -> rows (Change one of them",
        ),
        ("SQL", "SELECT (1 AS x", "the SQL 'SELECT (1 AS x' can't be parsed"),
        ("SQL", "SELECT 'a AS x", "can't be parsed"),
        ("COLUMN", "concat(id", "entity 'people': the SQL 'concat(id' can't be parsed: expecting )"),
    ],
)
def test_a_wrong_expression_of_a_job_is_an_error(tmp_path: Path, place: str, text: str, message: str) -> None:
    errors, _ = texts(tmp_path, **{place: text})
    assert any(message in error for error in errors), errors


@pytest.mark.parametrize(
    ("place", "text", "message"),
    [
        ("ENTRY", "e=${bucket}/x", "environment entry 'e': unknown name 'bucket'"),
        ("UNUSED", "unused: {kind: delta, location: gold/$who}", "relation 'unused': unknown name 'who'"),
        ("SQL", "DROP TABLE orders", "can't be parsed: it is not one query"),
        ("SQL", "SELECT amuont FROM orders", "declares the column 'amuont' (did you mean 'amount'?)"),
        ("CONDITION", "amont > 1", "mapping 'kept': no table of the query declares the column 'amont'"),
        ("CONDITION", "amount > 1 AND", "mapping 'kept': the SQL 'amount > 1 AND' can't be parsed"),
    ],
)
def test_what_may_be_meant_so_or_only_spark_knows_is_a_warning(
    tmp_path: Path, place: str, text: str, message: str
) -> None:
    errors, warnings = texts(tmp_path, **{"SQL": "SELECT 1 AS x", place: text})
    assert not errors
    assert len(warnings) == 1
    assert message in warnings[0]


@pytest.mark.parametrize(
    "text", ["SELECT '$LocalDate.parse($word)' AS x", "SELECT '${word.substring(9)}' AS x", "SELECT $n AS x"]
)
def test_what_depends_on_the_value_of_a_parameter_is_no_fault(tmp_path: Path, text: str) -> None:
    assert texts(tmp_path, SQL=text) == ([], [])


def test_a_text_that_was_parsed_is_not_parsed_again(tmp_path: Path) -> None:
    """The second time, the parser, whose import is slow, isn't used; a changed text is parsed."""
    first = texts(tmp_path, SQL="SELECT amuont FROM orders")
    with mock.patch.dict(sys.modules, {"sqlglot": None}):
        assert texts(tmp_path, SQL="SELECT amuont FROM orders") == first
        with pytest.raises(ImportError):
            texts(tmp_path, SQL="SELECT amount FROM orders")


def test_a_file_that_the_project_lacks_is_found_unless_a_parameter_names_it(tmp_path: Path) -> None:
    sql = 'rows: {kind: sql, sql: "SQL"}'
    schema = "schema: {kind: inline, fields: [{name: id, type: long}, {name: amount, type: double}]}"
    text = MODEL.replace(sql, "rows: {kind: sql, file: FILE}").replace(
        schema, "schema: {kind: json, file: s.json}"
    )
    for name, value in RIGHT.items():
        text = text.replace(name, value)
    environment = {"XDG_STATE_HOME": str(tmp_path / "state")}

    def errors(file: str) -> list[str]:
        project = make_project(tmp_path, text.replace("FILE", file))
        return [str(each) for each in validate_project(App(project, environment)).errors]

    lacks_schema = "there is no file s.json in job 'daily' (Create it, or correct the path.)"
    assert [each.partition(": ")[2] for each in errors("rows.sql")] == [
        "mapping 'rows': there is no file rows.sql in job 'daily' (Create it, or correct the path.)",
        f"relation 'orders': {lacks_schema}",
    ]
    (tmp_path / "rows.sql").write_text("SELECT 1 AS id")
    assert len(errors("rows.sql")) == len(errors("'${word}.sql'")) == 1  # the schema's


def test_a_job_without_targets_is_a_warning_unless_others_extend_it(tmp_path: Path) -> None:
    text = "jobs: {idle: {targets: []}, base: {targets: []}, daily: {extends: base, targets: []}}"
    found = validate_project(App(make_project(tmp_path, text), {"XDG_STATE_HOME": str(tmp_path / "state")}))
    assert [each.message for each in found.warnings] == [
        "job 'idle' has no targets",
        "job 'daily' has no targets",
    ]


NAMING = """
relations:
  declared: {kind: file, format: csv, location: raw, schema: {fields: [{name: id, type: int}]}}
  unknown: {kind: file, format: csv, location: other}
mappings:
  declared: {kind: relation, relation: declared}
  unknown: {kind: relation, relation: unknown, columns: {x: int}}
  groups: {kind: groupedAggregate, input: declared, aggregations: {n: count(id)}, groups: {all: {}}}
  parts: {kind: unit, mappings: {one: {kind: alias, input: declared}}}
  rest: {kind: unit, mappings: {main: {kind: alias, input: "parts:one"}, other: {kind: alias, input: main}}}
  all: {kind: union, inputs: [rest, "rest:main", "rest:other", "groups:all", "groups:all"]}
  cast: {kind: cast, input: declared, columns: {ID: string}}
  tested: TESTED
"""


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("alias, input: groups", "mapping 'groups' has no output main, so its plain name means nothing"),
        ("alias, input: parts", "has no output main, so its plain name means nothing (Read parts:one.)"),
        ("alias, input: 'parts:main'", "has no output main"),
        ("alias, input: 'parts:none'", "mapping 'parts' has no output 'none' (Its outputs are one.)"),
        ("sql, sql: SELECT * FROM groups", "mapping 'groups' has no output main"),
        ("relation, relation: declared, columns: {x: int}", "relation 'declared' declares no column 'x'"),
    ],
)
def test_outputs_and_columns_that_do_not_exist_are_errors(tmp_path: Path, mapping: str, message: str) -> None:
    errors, warnings = faults_of_naming(tmp_path, mapping)
    assert (len(errors), warnings) == (1, [])
    assert message in errors[0]
    assert errors[0].startswith("module.yml:13: mapping 'tested': ")


@pytest.mark.parametrize(
    "mapping",
    [
        "cast, input: cast, columns: {x: int}",
        "drop, input: declared, columns: x",
        "deduplicate, input: declared, columns: x",
        "latest, input: declared, keyColumns: id, versionColumns: x",
        "project, input: declared, columns: [x]",
        "sort, input: declared, columns: [{x: asc}]",
        "stack, input: declared, nameColumn: n, valueColumn: v, stackColumns: {x: a}",
        "explode, input: declared, array: x",
        "explode, input: declared, array: id, outerColumns: {drop: x.y, keep: '*'}",
        "historize, input: declared, keyColumns: id, timeColumn: x",
        "upsert, input: declared, updates: declared, keyColumns: x",
        "groupedAggregate, input: declared, aggregations: {n: count(*)}, groups: {a: {dimensions: x}}",
    ],
)
def test_a_column_that_no_declaration_of_the_input_has_is_a_warning(tmp_path: Path, mapping: str) -> None:
    errors, warnings = faults_of_naming(tmp_path, mapping)
    assert (errors, len(warnings)) == ([], 1)
    assert warnings[0].startswith("module.yml:13: mapping 'tested': ")
    assert " column 'x" in warnings[0]


def faults_of_naming(folder: Path, mapping: str) -> tuple[list[str], list[str]]:
    project = make_project(folder, NAMING.replace("TESTED", f"{{kind: {mapping}}}"))
    found = validate_project(App(project, {"XDG_STATE_HOME": str(folder / "state")}))
    return [str(fault) for fault in found.errors], [str(fault) for fault in found.warnings]


def test_names_that_a_definition_of_an_imported_project_lacks_are_an_error(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "project.yml").write_text("name: other\nmodules: [m.yml]\n")
    (other / "m.yml").write_text(
        'mappings:\n  all: {kind: alias, input: some}\n  some: {kind: values, records: ["$country"]}\n'
    )
    sections = """
mappings: {all: {kind: alias, input: other/all}}
relations: {out: {kind: delta, location: out}}
targets: {out: {kind: relation, mapping: all, relation: out}}
jobs: {daily: {targets: [out]}}
"""
    project = make_project(tmp_path, sections, "imports: [{project: other, location: other}]\n")
    found = validate_project(App(project, {"XDG_STATE_HOME": str(tmp_path / "state")}))
    (error,) = found.errors
    assert "import 'other': mapping 'some': unknown name 'country' in job 'daily'" in error.message
    assert str(error.location) == "other/m.yml:3"
