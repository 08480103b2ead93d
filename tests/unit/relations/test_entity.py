"""The `entity` relation: the time at which it is read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lakewright import Project
from lakewright.relations.entity import EntityRelation
from lakewright.workspace.workspace import Workspace

AT = datetime(2024, 5, 1, 10, tzinfo=UTC)
MODEL = """
connections: {c: {settings: {bronze_path: x, silver_path: x}}}
entities:
  h:
    {id: 1, connection: c, processtype: historic, columns: [{name: id, fieldroles: [businesskey]}]}
templates:
  then:
    kind: relation
    parameters: [{name: at}]
    template: {kind: entity, entity: h, asOf: $at}
relations:
  plain: {kind: entity, entity: h, asOf: "${t}"}
  named: {kind: entity, entity: h, asOf: $when}
  made: {kind: template/then, at: "${t}"}
  repeated: {kind: template, relation: other, environment: {at: "${t}"}}
  other: {kind: entity, entity: h, asOf: "${at}"}
  local: {kind: entity, entity: h, asOf: "2024-05-01T12:00"}
mappings:
  inline: {kind: relation, relation: {kind: entity, entity: h, asOf: "${t}"}}
environment: {when: "${t}", at: "2000-01-01"}
jobs: {load: {parameters: [{name: t, type: timestamp}], targets: []}}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "project.yml").write_text(
        "name: shop\nmodules: [m]\nlake: {root_folder: lake, timezone: Europe/Amsterdam}\n"
    )
    (tmp_path / "m").mkdir()
    (tmp_path / "m/m.yml").write_text(MODEL)
    app = Project.load(tmp_path).app
    scope = app.project.scope.instance({}, {"t": AT})
    return Workspace(app.project.within(scope), scope, app.lake)


@pytest.mark.parametrize("name", ["plain", "named", "made", "repeated", "local"])
def test_a_timestamp_keeps_its_instant_in_any_zone_of_the_lake(workspace: Workspace, name: str) -> None:
    """`${t}` renders in UTC without an offset; a text without an offset is in the lake's zone."""
    relation = workspace.relation(name)
    assert isinstance(relation, EntityRelation)
    assert relation._at(workspace) == AT


def test_so_does_that_of_a_relation_inside_a_mapping(workspace: Workspace) -> None:
    mapping: Any = workspace.mapping("inline")
    assert mapping.relation._at(workspace) == AT
