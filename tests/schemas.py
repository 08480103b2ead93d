"""Whether a value is as a JSON schema says: as much of draft 2020-12 as the project's schemas use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

Schema = Mapping[str, Any]
Check = Callable[[Any, Any, Schema, Schema, str], Iterator[str]]


class _Plain(yaml.SafeLoader):
    """Reads dates as texts, as editors do."""


_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def plain_yaml(file: Path) -> Any:
    """Return what an editor sees in a YAML file."""
    return yaml.load(file.read_text(), _Plain)


def violations(schema: Schema, value: Any, root: Schema | None = None, path: str = "") -> list[str]:
    """Return where and how a value differs from what its schema asks for."""
    root = schema if root is None else root
    found: list[str] = []
    for keyword, wanted in schema.items():
        if keyword in _IGNORED:
            continue
        found += _CHECKS[keyword](wanted, value, schema, root, path)
    return found


def _type(wanted: Any, value: Any, schema: Schema, root: Schema, path: str) -> Iterator[str]:
    names = wanted if isinstance(wanted, list) else [wanted]
    if not any(_TYPES[name](value) for name in names):
        yield f"{path}: {value!r} is no {wanted}"


def _properties(wanted: Any, value: Any, schema: Schema, root: Schema, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in wanted.items():
            # An entry without a value counts as not given.
            if value.get(name) is not None:
                yield from violations(inner, value[name], root, f"{path}/{name}")


def _additional(wanted: Any, value: Any, schema: Schema, root: Schema, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    for name in value.keys() - schema.get("properties", {}).keys():
        if wanted is False:
            yield f"{path}: {name!r} is unknown"
        elif isinstance(wanted, dict):
            yield from violations(wanted, value[name], root, f"{path}/{name}")


def _required(wanted: Any, value: Any, schema: Schema, root: Schema, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{path}: {name!r} is missing" for name in wanted if name not in value)


def _items(wanted: Any, value: Any, schema: Schema, root: Schema, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from violations(wanted, inner, root, f"{path}/{index}")


def _any(wanted: Any, value: Any, schema: Schema, root: Schema, path: str) -> Iterator[str]:
    tried = [violations(inner, value, root, path) for inner in wanted]
    if all(tried):
        yield from min(tried, key=len)


def _all(wanted: Any, value: Any, schema: Schema, root: Schema, path: str) -> Iterator[str]:
    for inner in wanted:
        yield from violations(inner, value, root, path)


def _ref(wanted: Any, value: Any, schema: Schema, root: Schema, path: str) -> Iterator[str]:
    yield from violations(root["$defs"][wanted.removeprefix("#/$defs/")], value, root, path)


def _if(wanted: Any, value: Any, schema: Schema, root: Schema, path: str) -> Iterator[str]:
    branch = "else" if violations(wanted, value, root, path) else "then"
    if branch in schema:
        yield from violations(schema[branch], value, root, path)


def _enum(wanted: Any, value: Any, schema: Schema, root: Schema, path: str) -> Iterator[str]:
    if value not in wanted:
        yield f"{path}: {value!r} is none of {wanted}"


def _const(wanted: Any, value: Any, schema: Schema, root: Schema, path: str) -> Iterator[str]:
    if value != wanted:
        yield f"{path}: {value!r} isn't {wanted!r}"


def _pattern(wanted: Any, value: Any, schema: Schema, root: Schema, path: str) -> Iterator[str]:
    if isinstance(value, str) and not re.search(wanted, value):
        yield f"{path}: {value!r} doesn't match {wanted}"


def _least(wanted: Any, value: Any, schema: Schema, root: Schema, path: str) -> Iterator[str]:
    if _is_number(value) and value < wanted:
        yield f"{path}: {value} is below {wanted}"


def _most(wanted: Any, value: Any, schema: Schema, root: Schema, path: str) -> Iterator[str]:
    if _is_number(value) and value > wanted:
        yield f"{path}: {value} is above {wanted}"


def _longer(wanted: Any, value: Any, schema: Schema, root: Schema, path: str) -> Iterator[str]:
    if isinstance(value, str | list | dict) and len(value) < wanted:
        yield f"{path}: {value!r} is too short"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}

_CHECKS: Mapping[str, Check] = {
    "type": _type,
    "properties": _properties,
    "additionalProperties": _additional,
    "required": _required,
    "items": _items,
    "anyOf": _any,
    "oneOf": _any,
    "allOf": _all,
    "$ref": _ref,
    "if": _if,
    "enum": _enum,
    "const": _const,
    "pattern": _pattern,
    "minimum": _least,
    "maximum": _most,
    "minLength": _longer,
    "minItems": _longer,
    "minProperties": _longer,
}

_IGNORED = frozenset(
    {"$schema", "$defs", "title", "description", "then", "else", "default", "examples", "format"}
)
