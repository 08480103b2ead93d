"""Two targets of a job of which the later one replaces what the other has built are told by `validate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakewright.app import App
from lakewright.usecases.validate_project import validate_project

MODEL = """
relations:
  log:
    kind: delta
    location: gold/log
    partitions: [{name: day, type: date}]
    schema: {fields: [{name: who, type: string}]}
mappings:
  a: {kind: sql, sql: "SELECT 'a' AS who"}
targets:
  b: {kind: relation, mapping: a, relation: log, partition: {day: $day}, mode: APPEND}
  o: {kind: relation, mapping: a, relation: log, OPTIONS}
jobs:
  daily: {parameters: [{name: day, type: date}, {name: before, type: date}], targets: [b, o]}
"""


@pytest.mark.parametrize(
    ("options", "is_told"),
    [
        ("partition: {day: $day}", True),
        ("mode: OVERWRITE", True),
        ("partition: {day: $day}, before: b", False),
        ("partition: {day: '1999-01-01'}", False),
        ("partition: {day: $day}, mode: APPEND", False),
        ("partition: {day: $before}", False),
    ],
)
def test_a_target_that_replaces_what_another_has_built_is_told(
    tmp_path: Path, options: str, *, is_told: bool
) -> None:
    (tmp_path / "project.yml").write_text("name: p\nmodules: [m.yml]\n")
    (tmp_path / "m.yml").write_text(MODEL.replace("OPTIONS", options))
    app = App.open(tmp_path)
    found = validate_project(app)
    assert found.errors == ()
    told = "job 'daily': target 'o' is built after target 'b', and replaces what it has written to"
    assert any(told in each.message for each in found.warnings) is is_told
    app.close()
