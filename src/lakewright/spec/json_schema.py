"""JSON schemas of the project's files, for editors.

They are generated from the models that read the files, so that editors and the loader agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from lakewright.spec.definitions.definer import WITHOUT_KINDS
from lakewright.spec.definitions.definition import PREFIX, TemplateSpec
from lakewright.spec.definitions.registry import Registry
from lakewright.spec.models.base import ALSO, ENTRIES, KIND_MARK, Named, SnakeModel
from lakewright.spec.models.documentation import DocumentationFile
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.entity_settings import SourceConnection
from lakewright.spec.models.lake import LakeSettings
from lakewright.spec.models.project_file import ApplySettings, ClusterSettings, ProjectFile
from lakewright.spec.models.short import ShortEntity, ShortTable
from lakewright.spec.models.storage import StorageSettings
from lakewright.spec.reading.sections import CATEGORIES, LISTED, TABLES

DIALECT = "https://json-schema.org/draft/2020-12/schema"
EXPRESSION = {"type": "string", "pattern": r"\$", "description": "An expression with such a value."}
NUMBER = r"^[-+]?\d[\d_.eE+-]*$"
TEXTS = {
    "integer": NUMBER,
    "number": NUMBER,
    "boolean": "^([Tt]rue|[Ff]alse|[Yy]es|[Nn]o|[Oo]n|[Oo]ff|[01])$",
}
"""Patterns of texts that are converted to these types."""

SETTINGS: Mapping[str, type[SnakeModel]] = {
    "lake": LakeSettings,
    "storage": StorageSettings,
    "cluster": ClusterSettings,
    "apply": ApplySettings,
}
"""Classes of sections with settings."""


def project_schema(kinds: Registry) -> dict[str, Any]:
    """Return the schema of `project.yml`, which may have all sections of a module."""
    top, module = _lenient(ProjectFile.model_json_schema()), module_schema(kinds)
    return {
        **module,
        **top,
        "properties": module["properties"] | top["properties"],
        "$defs": {**module["$defs"], **top.pop("$defs", {})},
    }


def documentation_schema() -> dict[str, Any]:
    """Return the schema of `documentation.yml`."""
    return {"$schema": DIALECT, **_lenient(DocumentationFile.model_json_schema())}


def entities_schema(kinds: Registry) -> dict[str, Any]:
    """Return the schema of a JSON file in Datalake Foundation's shape."""
    module = module_schema(kinds)
    sections = {name: module["properties"][name] for name in ("connections", "entities")}
    return {
        **module,
        "title": "Lakewright entities",
        "properties": {"environment": {"$ref": "#/$defs/lake"}, **sections},
    }


def module_schema(kinds: Registry) -> dict[str, Any]:
    """Return the schema of a module's YAML file, with all supported kinds."""
    models = {(category, kind): model for category, kind, model in _models(kinds)}
    asked: list[type[BaseModel]] = [*models.values(), *SETTINGS.values(), ShortEntity, ShortTable]
    references, shared = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(asked)],
        ref_template="#/$defs/{model}",
        schema_generator=GenerateJsonSchema,
    )
    definitions = {name: _lenient(schema) for name, schema in shared.get("$defs", {}).items()}
    for model in dict.fromkeys(models.values()):
        _without_name(definitions[references[model, "validation"]["$ref"].rpartition("/")[2]])
    for category in {*kinds.categories, *CATEGORIES.values(), "hook", "check"}:
        of_category = {kind: model for (owner, kind), model in models.items() if owner == category}
        definitions[category] = _one_of_kinds(category, of_category, references)
        for kind, model in of_category.items():
            definitions[f"{category}.{kind}"] = dict(references[model, "validation"])
    definitions |= {name: dict(references[model, "validation"]) for name, model in SETTINGS.items()}
    definitions["entity"] = {
        "if": {"anyOf": [{"required": ["processtype"]}, {"required": ["settings"]}]},
        "then": definitions["entity"],
        "else": {"$ref": "#/$defs/ShortEntity"},
    }
    return {
        "$schema": DIALECT,
        "title": "Lakewright module",
        "type": "object",
        "additionalProperties": False,
        "properties": _sections(),
        "$defs": definitions,
    }


def _models(kinds: Registry) -> Iterable[tuple[str, str, type[Named]]]:
    for category in kinds.categories:
        for kind in kinds.kinds(category):
            yield category, kind, kinds.find(category, kind)
    yield "connection", "source", SourceConnection
    for category, model in WITHOUT_KINDS.items():
        yield category, "", model
    yield "template", "", TemplateSpec


def _sections() -> dict[str, Any]:
    named: dict[str, Any] = {
        section: {"type": "object", "additionalProperties": {"$ref": f"#/$defs/{category}"}}
        for section, category in CATEGORIES.items()
    }
    for section in LISTED:
        item = {"allOf": [named[section]["additionalProperties"]], "required": ["name"]}
        named[section] = {"anyOf": [named[section], {"type": "array", "items": item}]}
    settings = {name: {"$ref": f"#/$defs/{name}"} for name in SETTINGS}
    entries = {"description": "key=value each", **_lenient(ENTRIES)}
    shared = {"environment": entries, "config": entries, **settings, "manifest": {"type": "object"}}
    profile = {"enabled": {"type": ["boolean", "string"]}, "description": {"type": "string"}, **shared}
    profile["connections"] = named["connections"]
    profiles = {
        "type": "object",
        "additionalProperties": {"type": "object", "properties": profile, "additionalProperties": False},
    }
    tables = {"type": "object", "additionalProperties": {"$ref": "#/$defs/ShortTable"}}
    return {**named, **shared, TABLES: tables, "profiles": profiles}


def _without_name(definition: dict[str, Any]) -> None:
    """Remove `name` from the keys of a definition, because its key in the section is its name.

    Connections and entities keep it, because they may be written as lists.
    """
    if definition["title"] in (Entity.__name__, SourceConnection.__name__):
        definition["properties"]["name"] = {"type": "string"}
    else:
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
    """Return a schema that accepts all that the loader does: expressions, numbers as texts, single items."""
    if isinstance(schema, list):
        return [_lenient(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if KIND_MARK in schema:
        category, default, is_short = schema[KIND_MARK]
        return _of_a_kind(category, default, is_short=is_short)
    made = {
        key: {name: _lenient(inner) for name, inner in value.items()}
        if key in ("properties", "$defs")
        else _lenient(value)
        for key, value in schema.items()
        if key != "default"
    }
    return _as_written(made)


def _as_written(made: dict[str, Any]) -> dict[str, Any]:
    kind = made.get("type")
    if ALSO in made:
        return {"anyOf": [made, *made.pop(ALSO)]}
    if kind == "string" and ("enum" in made or "pattern" in made):
        words = [{"type": "string", "pattern": _in_any_case(made["enum"])}] if "enum" in made else []
        return {"anyOf": [made, *words, EXPRESSION]}
    if kind == "string" and "const" not in made:
        return {**made, "type": ["string", "number", "boolean"]}
    if isinstance(kind, str) and kind in TEXTS:
        return {"anyOf": [made, {"type": "string", "pattern": TEXTS[kind]}, EXPRESSION]}
    if kind == "array":
        described: dict[str, Any] = {key: made.pop(key) for key in ("title", "description") if key in made}
        return {**described, "anyOf": [made, made.get("items") or {}]}
    return made


def _of_a_kind(category: str, default: str | None, *, is_short: bool) -> dict[str, Any]:
    known: dict[str, Any] = {"$ref": f"#/$defs/{category}"}
    if is_short:
        return {"anyOf": [known, {"type": "string", "description": "The kind alone."}]}
    if default is None:
        return known
    return {"if": {"required": ["kind"]}, "then": known, "else": {"$ref": f"#/$defs/{category}.{default}"}}


def _in_any_case(words: Iterable[str]) -> str:
    """Return a pattern that matches the words in any case, with or without underscores."""
    return f"^({'|'.join(map(_loose, words))})$"


def _loose(word: str) -> str:
    letters = (
        f"[{each.upper()}{each.lower()}]" if each.isalpha() else re.escape(each)
        for each in word
        if each != "_"
    )
    return "_?".join(letters)
