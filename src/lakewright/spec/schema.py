"""JSON schema of the project's files, for editors.

Made from the same classes that read the files, so it says no more and no less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from lakewright.spec.case import Case
from lakewright.spec.entity import Entity, SourceConnection
from lakewright.spec.job import Job
from lakewright.spec.lake import LakeSettings
from lakewright.spec.load import ProjectFile
from lakewright.spec.model import Named
from lakewright.spec.registry import Registry
from lakewright.spec.sections import CATEGORIES
from lakewright.spec.template import PREFIX, TemplateSpec

__all__ = ["module_schema", "project_schema"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
EXPRESSION = {"type": "string", "pattern": r"\$", "description": "An expression that comes to such a value."}
ENTRIES = {
    "description": "key=value each",
    "anyOf": [
        {"type": "array", "items": {"type": "string", "pattern": "="}},
        {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}},
        {"type": "string", "pattern": "="},
    ],
}
FIXED: Mapping[str, type[Named]] = {"job": Job, "test": Case, "entity": Entity, "template": TemplateSpec}


def project_schema() -> dict[str, Any]:
    """Return the schema of `project.yml`."""
    top = _lenient(ProjectFile.model_json_schema())
    top["properties"] |= {"lake": {"$ref": "#/$defs/lake"}, "manifest": {"type": "object"}}
    return {"$schema": DIALECT, **top, "$defs": {**top.pop("$defs", {}), **_lake()}}


def module_schema(kinds: Registry) -> dict[str, Any]:
    """Return the schema of a module's YAML file, with every kind that is offered."""
    models = {(category, kind): model for category, kind, model in _models(kinds)}
    references, shared = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(models.values())],
        ref_template="#/$defs/{model}",
        schema_generator=GenerateJsonSchema,
    )
    definitions = {name: _lenient(schema) for name, schema in shared.get("$defs", {}).items()}
    for model in dict.fromkeys(models.values()):
        _without_name(definitions[references[model, "validation"]["$ref"].rpartition("/")[2]])
    for category in {*kinds.categories, *CATEGORIES.values(), "hook"}:
        of_category = {kind: model for (owner, kind), model in models.items() if owner == category}
        definitions[category] = _one_of_kinds(category, of_category, references)
    definitions |= _lake()
    return {
        "$schema": DIALECT,
        "title": "Lakewright module",
        "type": "object",
        "additionalProperties": False,
        "properties": _sections(),
        "$defs": definitions,
    }


def _lake() -> dict[str, Any]:
    schema = _lenient(LakeSettings.model_json_schema())
    return {**schema.pop("$defs", {}), "lake": schema}


def _models(kinds: Registry) -> Iterable[tuple[str, str, type[Named]]]:
    for category in kinds.categories:
        for kind in kinds.kinds(category):
            yield category, kind, kinds.find(category, kind)
    yield "connection", "source", SourceConnection
    for category, model in FIXED.items():
        yield category, "", model


def _sections() -> dict[str, Any]:
    named = {
        section: {"type": "object", "additionalProperties": {"$ref": f"#/$defs/{category}"}}
        for section, category in CATEGORIES.items()
    }
    shared = {
        "environment": ENTRIES,
        "config": ENTRIES,
        "lake": {"$ref": "#/$defs/lake"},
        "manifest": {"type": "object"},
    }
    profile = {"enabled": {"type": ["boolean", "string"]}, "description": {"type": "string"}, **shared}
    profile["connections"] = named["connections"]
    profiles = {
        "type": "object",
        "additionalProperties": {"type": "object", "properties": profile, "additionalProperties": False},
    }
    return {**named, **shared, "profiles": profiles}


def _without_name(definition: dict[str, Any]) -> None:
    """Take the name out of a definition's keys: it is the key below which the definition stands."""
    definition["properties"].pop("name", None)
    definition["required"] = [key for key in definition.get("required", ()) if key != "name"]


def _one_of_kinds(
    category: str, models: Mapping[str, type[Named]], references: Mapping[Any, Mapping[str, Any]]
) -> dict[str, Any]:
    def reference(model: type[BaseModel]) -> Mapping[str, Any]:
        return references[model, "validation"]

    if set(models) == {""}:
        return dict(reference(models[""]))
    choices = [
        {"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": reference(model)}
        for kind, model in sorted(models.items())
    ]
    known = {"anyOf": [{"enum": sorted(models)}, {"pattern": f"^{PREFIX}"}]}
    needs_kind = [] if category == "connection" else ["kind"]
    return {"type": "object", "properties": {"kind": known}, "required": needs_kind, "allOf": choices}


def _lenient(schema: Any) -> Any:
    """Return a schema that takes what the reader does: expressions, numbers as texts, an item for a list."""
    if isinstance(schema, list):
        return [_lenient(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {
        key: {name: _lenient(inner) for name, inner in value.items()}
        if key in ("properties", "$defs")
        else _lenient(value)
        for key, value in schema.items()
        if key != "default"
    }
    if made.get("type") in ("integer", "number", "boolean"):
        return {"anyOf": [made, EXPRESSION]}
    if made.get("type") == "string" and "enum" not in made and "const" not in made:
        return {**made, "type": ["string", "number", "boolean"]}
    if made.get("type") == "array":
        described = {key: made.pop(key) for key in ("title", "description") if key in made}
        return {**described, "anyOf": [made, made.get("items") or {}]}
    return made
