"""Faults of different kinds, of which none hides another: the project files' rules, "All faults at once"."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands import InProcess

FILES = {
    "project.yml": """\
name: many
modules: [silver.yml, gold.yml, entities.json]
lake: {root_folder: lake}
storage: {s4: {}}
environment:
  place: "../../elsewhere"
""",
    "silver.yml": """\
entities:
  customers:
    from: in/customers/*.csv
    key: id
    strategy: mergee
    columns: {id: long, name: strng}
    silver_path: $place
  orders:
    from: in/orders/*.csv
    key: id
    columns: {id: long}
    silver_path: $place
triggers:
  nightly: {job: dialy, phase: build, cron: "61 3 * * *"}
""",
    "gold.yml": """\
tables:
  revenue:
    sql: SELECT * FORM orders
  unread:
    sql: SELECT nme FROM few
relations:
  out: {kind: file, format: csv, location: "lake/out", headr: true}
  csv: {kind: file, format: csv, location: "lake/csv"}
mappings:
  a: {kind: sql, sql: "SELECT * FROM b"}
  b: {kind: sql, sql: "SELECT * FROM a"}
  c: {kind: sql, file: sql/none.sql}
  few: {kind: values, columns: {id: int}, records: [[1]]}
targets:
  t: {kind: relation, mapping: c, relation: csv, partition: {day: "$dya"}}
  v: {kind: relation, mapping: nix, relation: cvs, mode: OVERWRIT}
jobs:
  daily: {parameters: [{name: day, type: dat}], targets: [t, v, w]}
  hourly: {targets: [t]}
tests:
  rows:
    overrideMappings: {rowz: {kind: values, columns: {k: int}, records: []}}
    assertions: {a: {kind: sql, query: SELECT 1 AS k, expected: []}}
""",
    "entities.json": """\
{"connections": [{"name": "shop"}],
 "entities": [
   {"id": 1, "name": "x", "connection": "shp", "processtype": "merge", "columns": []}]}
""",
}
WRONG = [
    ("project.yml:4", "storage"),
    ("silver.yml:2", "silver_path of entity 'customers'"),
    ("silver.yml:5", "mergee"),
    ("silver.yml:6", "strng"),
    ("silver.yml:8", "silver_path of entity 'orders'"),
    ("silver.yml:14", "cron"),
    ("gold.yml:7", "headr"),
    ("gold.yml:10", "cycle"),
    ("gold.yml:12", "sql/none.sql"),
    ("gold.yml:15", "dya"),
    ("gold.yml:16", "nix"),
    ("gold.yml:16", "cvs"),
    ("gold.yml:16", "OVERWRIT"),
    ("gold.yml:18", "dat"),
    ("gold.yml:18", "target 'w'"),
    ("gold.yml:22", "rowz"),
    ("entities.json:3", "businesskey"),
    ("entities.json:3", "connection 'shp'"),
]
DOUBTED = [("gold.yml:3", "FORM"), ("gold.yml:5", "nme")]


def test_faults_of_all_kinds_are_reported_in_one_go(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)

    done = InProcess(tmp_path).run("validate", "-o", "json")

    assert done.code == 2
    errors = json.loads(done.out)["errors"]
    assert {each["code"] for each in errors} == {"spec"}
    assert len(errors) == len(WRONG), [each["message"] for each in errors]
    for place, name in WRONG:
        assert any(each["location"] == place and name in each["message"] for each in errors), (place, name)
    for place, name in DOUBTED:
        assert any(place in line and name in line for line in done.err.splitlines()), (place, name)
