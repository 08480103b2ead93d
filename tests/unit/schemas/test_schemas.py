from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.projects import make_workspace

from lakewright.errors import SpecError
from lakewright.relations.relation import Relation
from lakewright.schemas.spark import SparkSchema, as_spark_json
from lakewright.spec.models.fields import Field, parse_type
from lakewright.workspace.workspace import Workspace

AVRO = {
    "type": "record",
    "name": "order",
    "fields": [
        {"name": "id", "type": "long", "doc": "The key"},
        {
            "name": "price",
            "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}],
        },
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "size", "type": {"type": "enum", "name": "size", "symbols": ["S"]}},
        {"name": "other", "type": ["null", "size"]},
        {
            "name": "buyer",
            "type": {"type": "record", "name": "buyer", "fields": [{"name": "n", "type": "string"}]},
        },
        {"name": "counts", "type": {"type": "map", "values": ["int", "long"]}},
    ],
}

JSON = {
    "type": "object",
    "required": ["id", "when"],
    "$defs": {"money": {"type": "number"}},
    "properties": {
        "id": {"type": "integer", "description": "The key"},
        "when": {"type": ["string", "null"], "format": "date-time"},
        "price": {"$ref": "#/$defs/money"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "buyer": {"type": "object", "required": ["n"], "properties": {"n": {"type": "string"}}},
        "counts": {"type": "object", "additionalProperties": {"type": "integer", "format": "int32"}},
    },
}

SPARK = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": False, "metadata": {"comment": "The key"}},
        {"name": "xs", "type": {"type": "array", "elementType": "decimal(9,2)", "containsNull": True}},
        {
            "name": "s",
            "type": {"type": "struct", "fields": [{"name": "a", "type": "short", "nullable": True}]},
        },
        {"name": "m", "type": {"type": "map", "keyType": "string", "valueType": "date"}},
    ],
}

PROJECT = f"""
relations:
  inline:
    kind: empty
    schema: {{primaryKey: id, fields: [{{name: id, type: LONG, nullable: false}}, {{name: x, type: Text}}]}}
  divided:
    kind: empty
    partitions: [{{name: day, type: date}}, {{name: X, type: int}}]
    schema: {{kind: relation, relation: inline}}
  avro: {{kind: empty, schema: {{kind: avro, spec: '{json.dumps(AVRO)}'}}}}
  json: {{kind: empty, schema: {{kind: json, file: schema.json}}}}
  spark: {{kind: empty, schema: {{kind: spark, spec: '{json.dumps(SPARK)}'}}}}
  union:
    kind: empty
    schema:
      kind: union
      schemas:
        - {{kind: relation, relation: inline}}
        - fields: [{{name: ID, type: int, nullable: false}}, {{name: y, type: int, nullable: false}}]
  clash:
    kind: empty
    schema:
      kind: union
      schemas:
        - {{kind: relation, relation: inline}}
        - {{kind: inline, fields: {{name: id, type: string}}}}
  wrong: {{kind: empty, schema: {{kind: avro, spec: '[]'}}}}
  missing: {{kind: empty, schema: {{kind: json, file: nothing.json}}}}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "schema.json").write_text(json.dumps(JSON))
    return make_workspace(tmp_path, PROJECT)


def described(workspace: Workspace, relation: str) -> list[str]:
    fields = Relation.named(workspace, relation).fields(workspace)
    return [field.ddl.replace("`", "") for field in fields]


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        ("inline", ["id bigint NOT NULL", "x string"]),
        ("divided", ["id bigint NOT NULL", "x string", "day date NOT NULL"]),
        (
            "avro",
            [
                "id bigint NOT NULL",
                "price decimal(9,2)",
                "day date NOT NULL",
                "tags array<string> NOT NULL",
                "size string NOT NULL",
                "other string",
                "buyer struct<n: string NOT NULL> NOT NULL",
                "counts map<string,bigint> NOT NULL",
            ],
        ),
        (
            "json",
            [
                "id bigint NOT NULL",
                "when timestamp",
                "price double",
                "tags array<string>",
                "buyer struct<n: string NOT NULL>",
                "counts map<string,int>",
            ],
        ),
        (
            "spark",
            ["id bigint NOT NULL", "xs array<decimal(9,2)>", "s struct<a: smallint>", "m map<string,date>"],
        ),
        ("union", ["id bigint NOT NULL", "x string", "y int"]),
    ],
)
def test_columns_come_from_wherever_they_are_declared(
    workspace: Workspace, relation: str, expected: list[str]
) -> None:
    assert described(workspace, relation) == expected


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        ("clash", "column id is of type bigint in one schema and string in another"),
        ("wrong", "is not a schema of kind 'avro'"),
        ("missing", r"there is no file nothing\.json"),
    ],
)
def test_what_is_no_schema_says_why(workspace: Workspace, relation: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        described(workspace, relation)


def test_descriptions_and_keys_are_kept(workspace: Workspace) -> None:
    for relation in ("avro", "json", "spark"):
        assert Relation.named(workspace, relation).fields(workspace)[0].description == "The key"
    schema = Relation.named(workspace, "inline").declared_schema
    assert schema is not None
    assert schema.primary_key() == ("id",)


def test_a_schema_written_for_spark_is_read_again(workspace: Workspace) -> None:
    texts = ("tinyint", "array<struct<a: bigint, b: map<string, decimal(5,1)>>>", "timestamp", "date")
    fields = tuple(
        Field(name=f"c{index}", type=parse_type(text), nullable=index > 0, description="x")
        for index, text in enumerate(texts)
    )
    schema = SparkSchema(kind="spark", spec=json.dumps(as_spark_json(fields)))
    assert schema.fields(workspace) == fields
