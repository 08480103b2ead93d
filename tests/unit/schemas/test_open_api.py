"""Schemas of OpenAPI and Swagger documents (E14)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.projects import make_workspace

from lakewright.errors import SpecError

DOCUMENT = """
openapi: 3.0.0
components:
  schemas:
    Base: {properties: {id: {type: integer, format: int64}}, required: [id]}
    Address: {type: object, properties: {city: {type: string}}}
    Person:
      allOf:
        - $ref: "#/components/schemas/Base"
        - properties:
            born: {type: string, format: date, description: Day of birth}
            homes: {type: array, items: {$ref: "#/components/schemas/Address"}}
            pet: {allOf: [{$ref: "#/components/schemas/Address"}, {properties: {legs: {type: integer}}}]}
            name: {type: string, nullable: true}
      required: [born, name]
"""
SWAGGER = {"definitions": {"Item": {"required": ["id"], "properties": {"id": {"type": "integer"}}}}}

MODEL = """
relations:
  person: {kind: empty, schema: {kind: openApi, file: api.yml, entity: Person}}
  loose: {kind: empty, schema: {kind: openApi, file: api.yml, entity: Person, nullable: true}}
  item: {kind: empty, schema: {kind: swagger, file: swagger.json, entity: Item}}
  lost: {kind: empty, schema: {kind: openApi, file: api.yml, entity: Nobody}}
"""


def test_the_properties_of_an_entity_are_columns(tmp_path: Path) -> None:
    """E14: references, allOf and nullable are followed; Swagger 2 keeps its entities elsewhere."""
    (tmp_path / "api.yml").write_text(DOCUMENT)
    (tmp_path / "swagger.json").write_text(json.dumps(SWAGGER))
    workspace = make_workspace(tmp_path, MODEL)
    fields = workspace.relation("person").fields(workspace)
    assert {field.name: (field.type.ddl, field.nullable) for field in fields} == {
        "id": ("bigint", False),
        "born": ("date", False),
        "homes": ("array<struct<`city`: string>>", True),
        "pet": ("struct<`city`: string, `legs`: bigint>", True),
        "name": ("string", True),
    }
    assert fields[1].description == "Day of birth"
    assert {field.nullable for field in workspace.relation("loose").fields(workspace)} == {True}
    assert [field.type.ddl for field in workspace.relation("item").fields(workspace)] == ["bigint"]
    with pytest.raises(SpecError, match="no entity 'Nobody', only Address, Base, Person"):
        workspace.relation("lost").fields(workspace)
