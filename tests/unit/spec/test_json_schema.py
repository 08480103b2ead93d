"""The schemas that editors use take what the project's reader takes, and find what it refuses."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.schemas import plain_yaml, violations
from tests.unit.spec.kinds import KINDS

import lakewright
from lakewright.run.kinds import registry
from lakewright.spec.json_schema import (
    documentation_schema,
    entities_schema,
    module_schema,
    project_schema,
)

PACKAGE = Path(lakewright.__file__).parent
ROOT = Path(__file__).parents[3]
PROJECTS = sorted(
    file.parent
    for folder in (PACKAGE / "demo", PACKAGE / "templates", ROOT / "examples")
    for file in folder.rglob("project.yml")
)
EXAMPLES = sorted((ROOT / "docs" / "examples").rglob("*.yml"))


@cache
def usual_project() -> Any:
    """The schema of a project's file with all kinds."""
    return project_schema(registry())


@cache
def usual_module() -> Any:
    """The schema of a module with all kinds, made only in the worker that runs these tests."""
    return module_schema(registry())


@cache
def usual_entities() -> Any:
    return entities_schema(registry())


def references_in(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        own = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set()
        return own.union(*(references_in(inner) for inner in schema.values()), set())
    if isinstance(schema, list):
        return set().union(*(references_in(inner) for inner in schema))
    return set()


def test_the_schema_of_a_module_knows_every_kind_and_refers_to_what_is_there() -> None:
    schema = module_schema(KINDS)
    assert references_in(schema) <= {f"#/$defs/{name}" for name in schema["$defs"]}
    assert schema["$defs"]["relation"]["properties"]["kind"]["anyOf"][0] == {"enum": ["entity", "file"]}
    assert set(schema["properties"]) >= {"relations", "entities", "jobs", "profiles", "lake"}
    file = schema["$defs"]["FileRelation"]
    assert set(file["required"]) == {"location"}
    assert {"type": "integer"} in file["properties"]["limit"]["anyOf"][0]["anyOf"]
    assert "schema" in file["properties"]
    assert "name" not in file["properties"]


def test_the_schema_of_the_project_file_has_its_keys() -> None:
    schema = project_schema(KINDS)
    assert references_in(schema) <= {f"#/$defs/{name}" for name in schema["$defs"]}
    own = {"name", "version", "description", "modules", "imports"}
    assert set(schema["properties"]) == own | set(module_schema(KINDS)["properties"])
    assert set(schema["required"]) == {"name"}


@pytest.mark.parametrize("folder", PROJECTS, ids=lambda folder: folder.name)
def test_projects_are_as_their_schemas_say(folder: Path) -> None:
    for file in folder.rglob("*.yml"):
        schema = {"project.yml": usual_project(), "documentation.yml": documentation_schema()}.get(
            file.name, usual_module()
        )
        assert violations(schema, plain_yaml(file)) == [], file


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_examples_of_the_reference_are_as_the_schema_says(file: Path) -> None:
    assert violations(usual_module(), plain_yaml(file)) == []


@pytest.mark.parametrize(
    "text",
    [
        "relation: {}",
        "relations: {r: {location: x}}",
        "relations: {r: {kind: fil, location: x}}",
        "relations: {r: {kind: file}}",
        "relations: {r: {kind: file, location: x, formt: csv}}",
        "relations: {r: {kind: file, location: x, schema: {fields: [{nme: a, type: string}]}}}",
        "mappings: {m: {kind: distinct, input: {a: b}}}",
        "targets: {t: {kind: relation, relation: r, retries: -1}}",
        "targets: {t: {kind: relation, relation: r, retries: many}}",
        "targets: {t: {kind: verify, assertions: {a: {kind: nothing}}}}",
        "jobs: {j: {parameters: [{type: date}]}}",
        "entities: {e: {id: 1, connection: c, processtype: merged}}",
        "entities: {e: {id: 1, processtype: merge}}",
        "mappings: {m: {kind: values, columns: {x: int}, documentation: {checks: {kind: length, size: 1}}}}",
        "tests: {t: {overrideMappings: {m: {kind: moc}}}}",
        "config: {spark.x: [1]}",
        "lake: {root_folders: x}",
    ],
)
def test_what_the_reader_refuses_is_found(text: str) -> None:
    assert violations(usual_module(), yaml.safe_load(text))


@pytest.mark.parametrize(
    "text",
    [
        "relations: {r: {kind: $kind, location: x}}",
        "relations: {r: {kind: template/mine, anything: 1}}",
        "targets: {t: {kind: relation, relation: r, retries: '${tries}', enabled: $on, before: t2}}",
        "environment: [a=1, b=2]",
        "environment: {a: 1, b: 2022-01-01}",
        "jobs: {j: {parameters: {name: day, type: date, default: 2022-01-01}, targets: a}}",
        "entities: [{id: 1, name: e, connection: c, processtype: Full}]",
        "connections: [{name: c, settings: {any: thing}}]",
    ],
)
def test_what_the_reader_takes_is_taken(text: str) -> None:
    value = yaml.safe_load(text.replace("2022-01-01", "'2022-01-01'"))
    found = [each for each in violations(usual_module(), value) if "$kind" not in each]
    assert found == []


FOUNDATION: Any = {
    "environment": {"name": "test", "root_folder": "/lake", "timezone": "Europe/Amsterdam"},
    "connections": [{"name": "crm", "enabled": True, "settings": {"bronze_path": "x"}}],
    "entities": [
        {
            "id": 1,
            "name": "people",
            "enabled": True,
            "connection": "crm",
            "processtype": "Merge",
            "watermark": [{"column_name": "changed", "operation": "and", "expression": "${last_value}"}],
            "columns": [{"name": "id", "datatype": "integer", "fieldroles": ["businesskey"]}],
            "settings": {"delete_missing": "true", "own": 1},
            "transformations": [["*", "upper(name) AS name"]],
        }
    ],
}


def test_entity_files_are_as_their_schema_says() -> None:
    assert violations(usual_entities(), FOUNDATION) == []
    assert violations(usual_entities(), {"entity": []})
    assert violations(usual_entities(), {"entities": [{"name": "x"}]})


def test_settings_of_the_documentation_have_a_schema() -> None:
    schema = documentation_schema()
    good = {"collectors": {"kind": "checks"}, "generators": [{"location": "x", "template": "html+css"}]}
    assert violations(schema, good) == []
    assert violations(schema, {"generators": {"template": "latex"}})
    assert violations(schema, {"collector": []})
