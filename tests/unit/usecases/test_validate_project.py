"""Targets that read in a cycle what they write: `lifecycles-and-phases.md`, "Jobs & Lifecycles"."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.projects import make_project

from lakewright.spark.conf import SessionSettings
from lakewright.usecases.validate_project import find_cycles

MODEL = """
relations:
  a: {kind: delta, location: lake/$day/a, schema: {kind: inline, fields: [{name: k, type: integer}]}}
  b: {kind: file, format: csv, location: lake/$day/b, schema: {kind: relation, relation: a}}
mappings:
  read_a: {kind: relation, relation: a}
  read_b: {kind: relation, relation: b}
  rows: {kind: sql, sql: "SELECT 1 AS k"}
targets:
  to_a: {kind: relation, mapping: SOURCE, relation: a}
  to_b: {kind: relation, mapping: read_a, relation: b}
  wrong: {kind: relation, mapping: rows, relation: a, partition: {day: "$LocalDate.parse('x')"}}
jobs:
  daily:
    parameters: [{name: day, type: date}, {name: number, type: integer}, {name: word, default: x}]
    targets: [to_a, to_b, wrong]
  other: {parameters: [{name: day, type: date, default: $nobody}], targets: [to_a]}
"""


@pytest.mark.parametrize(("source", "cycle"), [("read_b", "to_a -> to_b -> to_a"), ("rows", None)])
def test_a_cycle_that_only_resources_make_is_found_without_planning(
    tmp_path: Path, source: str, cycle: str | None
) -> None:
    project = make_project(tmp_path, MODEL.replace("SOURCE", source))

    faults = list(find_cycles(project, SessionSettings(tmp_path / "state")))

    assert len(faults) == (cycle is not None)
    for fault in faults:
        assert "in BUILD, targets read what they write in a cycle" in fault.message
        assert fault.location is not None
        assert fault.location.file == "module.yml"
        assert {"to_a", "to_b"} <= set(fault.message.partition("cycle: ")[2].split(" -> "))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["module.yml", "project.yml"]
