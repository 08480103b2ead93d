"""The keys of a declared class as entries of a list."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BeforeValidator, ByteSize
from pydantic.fields import FieldInfo

from lakewright.schema.types import Scalar
from lakewright.spec.expressions.values import Duration
from lakewright.spec.models.base import KindOf, Model, Named, read_settings
from lakewright.spec.models.column import ColumnKeys

REQUIRED = "required"

PAGES = {
    "connection": "project.md#connections",
    "mapping": "mappings.md",
    "relation": "relations.md",
    "schema": "schemas.md",
    "target": "targets.md",
    "assertion": "targets.md#assertions",
    "check": "targets.md#checks",
    "dataset": "targets.md#datasets",
    "hook": "project.md#hooks",
    "measure": "targets.md#measures",
}
"""The page that documents each category's kinds."""

NAMES: dict[Any, str] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "boolean",
    Any: "any",
    Duration: "duration",
    timedelta: "length of time",
    ByteSize: "size",
}
PLURALS = {"text": "texts", "integer": "integers", "map": "maps", "list": "lists"}

DEFAULTS = {
    ("Entity", "name"): "the key",
    ("Entity", "destination"): "the name",
    ("Column", "name"): "",
    ("ReplayBudget", "bytes"): "`10GiB`",
}
"""Defaults that a class computes."""

ELSEWHERE = {"MetricBoard": "[metrics](project.md#metrics)"}
"""The sections of maps that several definitions have."""

UNUSED = {
    "DeltaVacuumTarget": ("min_files",),
    "EntitySettings": ("bronze_table",),
    "Field": ("format", "size", "charset"),
    "Job": ("metadata",),
    "Mapping": ("metadata",),
    "Relation": ("metadata",),
    "TableRelation": ("writer",),
}
"""Keys that are accepted for compatibility but have no effect."""


@dataclass(frozen=True, slots=True)
class Key:
    """One entry: a key, the values it takes, and its meaning."""

    name: str
    type: str
    default: str
    meaning: str
    is_used: bool

    @property
    def entry(self) -> str:
        """What its list says of the key: text needs no type, and of several values the default is bold."""
        choices = self.type.split(", ")
        is_plain = not self.default or (self.type, self.default) == (NAMES[bool], "`false`")
        if self.default in choices:
            takes = [f"**{each}**" if each == self.default else each for each in choices]
        else:
            default = self.default if self.default == REQUIRED else f"default {self.default}"
            takes = [*([] if self.type == NAMES[str] else choices), *([] if is_plain else [default])]
        brackets = f" ({', '.join(takes)})" if takes else ""
        return f"{brackets}: {self.meaning}"


def keys_of(
    model: type[Model],
    *,
    without: type[Model] | None = None,
    before: str = "",
    seen: dict[type[Model], str] | None = None,
) -> Iterator[Key]:
    """Yield the keys of a class and, with their paths, of the maps inside of it; each kind of map once.

    Args:
        model: The class.
        without: A base class whose keys are documented elsewhere.
        before: Path of the map.
        seen: The path of each kind of map whose keys were yielded.
    """
    seen = {} if seen is None else seen
    # What a relation is comes first, how it is migrated last; a column's name comes before its other keys.
    last = ColumnKeys.model_fields if issubclass(model, ColumnKeys) else ()
    fields = model.model_fields.items()
    for name, field in sorted(fields, key=lambda each: each[0].startswith("migration_") or each[0] in last):
        is_elsewhere = without is not None and name in without.model_fields
        # Keys of every definition, unless a class describes them differently
        is_bare = name in Named.model_fields and not field.description
        if is_elsewhere or is_bare:
            continue
        path = before + (field.alias or name)
        is_used = not any(name in UNUSED.get(each.__name__, ()) for each in model.__mro__)
        inner, suffix = _inner(field.annotation)
        alike = ELSEWHERE.get(inner.__name__) if inner else None
        places = (f"`{place}`" for each, place in seen.items() if inner and issubclass(each, inner))
        alike = alike or next(places, None)
        meaning = f"{field.description or ''} Its keys are those of {alike}." if alike else field.description
        yield Key(path, _type_of(field), _default(model, name, field), meaning or "", is_used)
        if inner is not None and alike is None:
            is_kind_alone = inner.model_fields.keys() <= Named.model_fields.keys()
            seen |= {} if is_kind_alone else {inner: f"{path}{suffix}"}
            yield from keys_of(inner, before=f"{path}{suffix}.", seen=seen)


def listed(keys: Sequence[Key], *others: str) -> str:
    """Return the keys as a list, with other entries, and a sentence about keys that have no effect.

    Keys with the same values and the same meaning share an entry. A `description`, which every definition
    may have, is left out: the page of project files says so.
    """
    names: dict[str, list[str]] = {}
    for key in keys:
        if key.is_used and key.name.rpartition(".")[2] != "description":
            names.setdefault(key.entry, []).append(f"`{key.name}`")
    entries = [*(f"- {', '.join(alike)}{entry}" for entry, alike in names.items())]
    entries += [f"- {other}" for other in others]
    unused = ", ".join(f"`{key.name}`" for key in keys if not key.is_used)
    sentence = f"Accepted, but without effect: {unused}." if unused else ""
    return "\n\n".join(part for part in ("\n".join(entries), sentence) if part)


def summary(model: type[Model]) -> str:
    """Return a class's docstring for readers of the reference."""
    text = inspect.cleandoc(model.__doc__ or "").partition("\n\nAttributes:")[0]
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _default(model: type[Model], name: str, field: FieldInfo) -> str:
    if (model.__name__, name) in DEFAULTS:
        return DEFAULTS[model.__name__, name]
    if field.is_required():
        return REQUIRED
    if field.default_factory is not None or field.default in (None, (), ""):
        return ""
    return f"`{_text(field.default)}`"


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    return str(value.value if isinstance(value, Enum) else value).replace("\n", "\\n")


def _type_of(field: FieldInfo) -> str:
    return _type(field.annotation, field.metadata)


def _type(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    marked = next((text for text in map(_marked, metadata) if text is not None), None)
    if marked is not None:
        return marked
    origin = get_origin(annotation)
    if origin is not None:
        return _SHAPES[origin](get_args(annotation))
    if inspect.isclass(annotation) and issubclass(annotation, Enum):
        return ", ".join(f"`{member.value}`" for member in annotation)
    if inspect.isclass(annotation) and issubclass(annotation, Model):
        return "map"
    return NAMES[annotation]  # a type without a name must not pass for a map


def _marked(mark: Any) -> str | None:
    """Return what an annotation says in addition to the type."""
    if isinstance(mark, KindOf):
        return f"[{mark.category}]({PAGES[mark.category]})"
    is_pairs = isinstance(mark, BeforeValidator) and mark.func is read_settings
    return "pairs" if is_pairs else None


def _choice(arguments: Sequence[Any]) -> str:
    if Scalar in arguments:
        return "[type](project.md#types)"
    return " or ".join(dict.fromkeys(_type(each) for each in arguments if each is not NoneType))


def _list_of(arguments: Sequence[Any]) -> str:
    inner = _type(arguments[0])
    return "list" if inner in ("any", "text") else f"list of {_plural(inner)}"


def _map_of(arguments: Sequence[Any]) -> str:
    inner = _type(arguments[1])
    return "map" if inner in ("any", "text") else f"map of {_plural(inner)}"


def _plural(inner: str) -> str:
    return " or ".join(PLURALS.get(part, part) for part in inner.split(" or "))


def _inner(annotation: Any, suffix: str = "") -> tuple[type[Model] | None, str]:
    """Return the class of the maps in a field, and the path to one: `[]` in a list, `.<name>` in a map."""
    if inspect.isclass(annotation) and issubclass(annotation, Model):
        return annotation, suffix
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated and any(isinstance(mark, KindOf) for mark in arguments[1:]):
        return None, suffix
    step = {tuple: "[]", list: "[]", dict: ".<name>"}.get(origin, "") if origin else ""
    found = (_inner(each, suffix + step) for each in arguments)
    return next((each for each in found if each[0] is not None), (None, suffix))


_SHAPES: Mapping[Any, Callable[[Sequence[Any]], str]] = {
    Annotated: lambda arguments: _type(arguments[0], arguments[1:]),
    Literal: lambda arguments: ", ".join(f"`{value}`" for value in arguments),
    Union: _choice,
    UnionType: _choice,
    dict: _map_of,
    list: _list_of,
    tuple: _list_of,
}
"""How to describe a type with arguments."""
