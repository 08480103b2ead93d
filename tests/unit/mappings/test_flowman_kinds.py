"""Kinds of Flowman's mappings: what they declare, need and refuse, without an engine (E14)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.projects import make_workspace

from lakewright.errors import SpecError
from lakewright.mappings.mapping import Mapping

MODEL = """
relations:
  raw: {kind: file, format: json, location: raw}
  other: {kind: file, format: json, location: other}
mappings:
  raw: {kind: relation, relation: raw}
  other: {kind: relation, relation: other}
  chosen:
    kind: case
    cases: [{condition: "${day.isBefore('2022-02-01')}", input: raw}, {condition: "true", input: other}]
  unit:
    kind: unit
    mappings:
      raw: {kind: alias, input: other}
      main: {kind: union, inputs: [raw, "json:error"]}
      json: {kind: extractJson, input: raw, column: text, schema: {fields: {name: id, type: int}}}
  groups:
    kind: groupedAggregate
    input: raw
    aggregations: {n: count(*)}
    groups: {by_day: {dimensions: day}}
  tree:
    kind: recursiveSql
    sql: SELECT id FROM raw UNION ALL SELECT t.id FROM __this__ t JOIN other ON other.id = t.id
  provided: {kind: provided, table: shop.items}
  hive: {kind: readHive, database: shop, table: items, filter: id > 1}
  reader: {kind: alias, input: "unit:json"}
"""


def test_each_kind_knows_what_it_reads(tmp_path: Path) -> None:
    """E14: order and taint follow from it."""
    workspace = make_workspace(
        tmp_path, MODEL.replace("${day.isBefore('2022-02-01')}", "$first"), first="false"
    )
    raw, other = (f"file:{tmp_path}/{name}" for name in ("raw", "other"))
    expected = {
        "chosen": {other},
        "unit": {other},
        "reader": {other},
        "groups:by_day": {raw},
        "tree": {raw, other},
        "provided": {"table:shop.items"},
        "hive": {"table:shop.items"},
    }
    assert {name: set(map(str, workspace.required(name))) for name in expected} == expected
    assert workspace.sql_text("hive") == "SELECT * FROM (SELECT * FROM `shop`.`items`) WHERE id > 1"
    again = make_workspace(tmp_path, MODEL.replace("${day.isBefore('2022-02-01')}", "$first"), first="true")
    assert set(map(str, again.required("chosen"))) == {raw}


def test_an_output_that_a_mapping_lacks_is_named_with_those_it_has(tmp_path: Path) -> None:
    """E14: `name:output` of extractJson, groupedAggregate and unit."""
    workspace = make_workspace(tmp_path, MODEL, day="2022-01-01")
    for name, outputs in (
        ("groups:x", "by_day"),
        ("unit:error", "main, raw, json"),
        ("raw:x", "main"),
    ):
        with pytest.raises(SpecError, match="has no output") as caught:
            workspace.required(name)
        assert caught.value.faults[0].remedy == f"Its outputs are {outputs}."


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("{kind: case, cases: {condition: maybe, input: raw}}", "'maybe' is neither true nor false"),
        ("{kind: case, cases: {condition: 'no', input: raw}}", "none of its 1 conditions holds"),
        ("{kind: repartition, input: raw}", "needs `partitions`, `columns` or both"),
        ("{kind: recursiveSql}", "needs exactly one of `sql`, `file`"),
        ("{kind: empty}", "needs either `columns` or `schema`"),
        ("{kind: unit, mappings: {}}", "needs at least one mapping"),
        ("{kind: unit, mappings: {main: {kind: alias, input: nobody}}}", "there is no mapping 'nobody'"),
        (
            "{kind: groupedAggregate, input: raw, aggregations: {n: x}, groups: {g: {aggregations: m}}}",
            "unknown aggregation 'm'",
        ),
        ("{kind: assemble, input: raw, columns: {kind: explode}}", "needs `path`"),
        (
            "{kind: assemble, input: raw, columns: [{kind: explode, path: a}, {kind: explode, path: b}]}",
            "only one",
        ),
        ("{kind: transitiveChildren}", "kind 'transitiveChildren' of mapping is not supported"),
        ("{kind: jsonExtract}", "kind 'jsonExtract' of mapping is not supported"),
    ],
)
def test_what_is_declared_wrong_says_what_and_where(tmp_path: Path, mapping: str, message: str) -> None:
    """E14: the kinds that stay out are known, with what to use."""
    sections = f"""
    relations: {{raw: {{kind: file, format: json, location: raw}}}}
    mappings:
      raw: {{kind: relation, relation: raw}}
      wrong: {mapping}
    """

    def ask() -> None:
        make_workspace(tmp_path, sections).required("wrong")

    with pytest.raises(SpecError, match=message):
        ask()


def test_the_columns_of_mappings_without_input_are_known_without_spark(tmp_path: Path) -> None:
    of_schema = "schema: {fields: [{name: a, type: int}, {name: b, type: string}]}"
    sections = "".join(
        f"  {kind}_{way}: {{kind: {kind}, {declared}}}\n"
        for kind in ("empty", "values")
        for way, declared in (("columns", "columns: {a: int, b: string}"), ("schema", of_schema))
    )
    workspace = make_workspace(tmp_path, f"mappings:\n{sections}")
    for name in ("empty_columns", "empty_schema", "values_columns", "values_schema"):
        mapping = workspace.mapping(name)
        assert isinstance(mapping, Mapping)
        assert mapping.declared_columns(workspace, lambda _: None) == ("a", "b")


def test_mappings_of_two_units_with_the_same_name_are_told_apart(tmp_path: Path) -> None:
    """What a target is built from has the files of both."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.sql").write_text("SELECT 1 AS id")
    unit = "{kind: unit, mappings: {main: {kind: sql, file: NAME.sql}}}"
    model = f"""
mappings:
  a: {unit.replace("NAME", "a")}
  b: {unit.replace("NAME", "b")}
  both: {{kind: union, inputs: [a, b]}}
"""
    workspace = make_workspace(tmp_path, model)
    found = workspace.declarations("both")
    (tmp_path / "a.sql").write_text("SELECT 2 AS id")
    changed = make_workspace(tmp_path, model).declarations("both")
    assert [name for name in found if found[name] != changed[name]] == ["mapping 'a'"]
