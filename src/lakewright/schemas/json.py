"""The `json`, `openApi` and `swagger` schemas: JSON Schema, and entities of OpenAPI and Swagger documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field as Declared

from lakewright.schema.types import Array, MapOf, Scalar, Struct, StructField, Type
from lakewright.schemas.schema import NullableSchema, TextSchema

_TYPES = {"string": "string", "integer": "bigint", "number": "double", "boolean": "boolean", "null": "void"}
_FORMATS = {"date": "date", "date-time": "timestamp", "int32": "int", "int64": "bigint", "float": "float"}
_DEEPEST = 20
"""Levels of nesting, and references in a row, after which a document is taken to be circular."""


class JsonSchema(TextSchema):
    """The columns are the properties of the object; those that aren't required may be null."""

    def parse(self, document: Any) -> Struct:
        """Return the properties, in their order."""
        return _Reader(document).columns(document)


class _Reader:
    """Reads types from a document, whose references it follows."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document

    def resolved(self, found: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the target of a reference within the document, or the argument if it is no reference."""
        for _ in range(_DEEPEST):
            if "$ref" not in found:
                return found
            target: Any = self.document
            for step in str(found["$ref"]).removeprefix("#/").split("/"):
                target = target[step]
            found = target
        raise ValueError(f"references form a cycle: {found['$ref']}")

    def merged(self, found: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
        """Return an object's description together with those that its `allOf` names."""
        found = self.resolved(found)
        if depth > _DEEPEST:
            raise ValueError(f"allOf is nested more than {_DEEPEST} levels deep")
        if "allOf" not in found:
            return found
        parts = [*(self.merged(part, depth + 1) for part in found["allOf"]), found]
        properties = {name: inner for part in parts for name, inner in part.get("properties", {}).items()}
        required = [name for part in parts for name in part.get("required", ())]
        return {**found, "properties": properties, "required": required}

    def type_of(self, found: Mapping[str, Any], depth: int) -> Type:
        """Return the type of a property."""
        found = self.merged(found)
        if depth > _DEEPEST:
            raise ValueError(f"types are nested more than {_DEEPEST} levels deep")
        kind = self._kind(found)
        if kind == "array":
            return Array(self.type_of(found["items"], depth + 1))
        if kind == "object":
            return self._object(found, depth)
        if kind not in _TYPES:
            raise ValueError(f"type {kind!r} is unknown")
        return Scalar(_FORMATS.get(str(found.get("format")), _TYPES[kind]))

    def is_nullable(self, found: Mapping[str, Any]) -> bool:
        """Return whether a property's type allows null."""
        found = self.resolved(found)
        kinds = found.get("type")
        return found.get("nullable") is True or (isinstance(kinds, list) and "null" in kinds)

    def _kind(self, found: Mapping[str, Any]) -> str:
        kinds = found.get("type", "object" if "properties" in found else "string")
        if not isinstance(kinds, list):
            return str(kinds)
        named = [kind for kind in kinds if kind != "null"]
        if len(named) != 1:
            raise ValueError(f"a column can't have several types: {', '.join(named)}")
        return str(named[0])

    def _object(self, found: Mapping[str, Any], depth: int) -> Type:
        values = found.get("additionalProperties")
        if "properties" not in found and isinstance(values, Mapping):
            return MapOf(Scalar("string"), self.type_of(values, depth + 1))
        return self._fields({"properties": {}, **found}, depth + 1)

    def columns(self, found: Mapping[str, Any]) -> Struct:
        """Return the properties of an object as columns.

        Raises:
            ValueError, KeyError, TypeError: It isn't the description of an object.
        """
        return self._fields(self.merged(found), 0)

    def _fields(self, found: Mapping[str, Any], depth: int) -> Struct:
        required = found.get("required", ())
        return Struct(
            tuple(
                StructField(
                    name,
                    self.type_of(inner, depth),
                    name not in required or self.is_nullable(inner),
                    inner.get("description"),
                )
                for name, inner in found["properties"].items()
            )
        )


_PLACES = (("components", "schemas"), ("definitions",))
"""Where OpenAPI 3 and Swagger 2 keep entities."""


class OpenApiSchema(NullableSchema):
    """The columns are the properties of an entity of an OpenAPI document, in YAML or JSON."""

    entity: str = Declared(description="Name of the entity in the document.")

    def document(self, text: str) -> Any:
        """Return the document, which is YAML; JSON is YAML, too.

        Raises:
            ValueError: It isn't one.
        """
        import yaml

        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(" ".join(str(error).split())) from error

    def parse(self, document: Any) -> Struct:
        """Return the properties of the entity, and those that `allOf` adds."""
        entities: dict[str, Any] = {}
        for place in _PLACES:
            found: Any = document
            for step in place:
                found = found.get(step, {}) if isinstance(found, dict) else {}
            entities |= found
        if self.entity not in entities:
            raise ValueError(
                f"it has no entity {self.entity!r}, only {', '.join(sorted(entities)) or 'none'}"
            )
        return _Reader(document).columns(entities[self.entity])
