"""The short form of entities and tables, read into the definitions of the long forms.

An entity becomes the entity, and the target that processes it. A table becomes the mapping of its query, the
relation that stores its rows, the mapping that reads them, and the target that writes them. What the project
declares under one of these names itself stays as it is.

Source: the rules of the short form, "A whole project".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pydantic import ValidationError

from lakewright.errors import Fault, Location
from lakewright.spec.definitions.definition import faults_of, valid_part
from lakewright.spec.definitions.registry import Registry
from lakewright.spec.loading.entity_checks import IDENTITY, PLACING
from lakewright.spec.models.base import SnakeModel, listed
from lakewright.spec.models.column import Role
from lakewright.spec.models.entity_settings import OF_NAME, EntityKeys, EntitySettings
from lakewright.spec.models.short import ShortEntity, ShortTable, flag_of
from lakewright.spec.models.slice_folder import format_of
from lakewright.spec.reading.parsed_file import Lines, ParsedFile, ValuePath
from lakewright.spec.reading.sections import RawDefinition

CONNECTION = "project"
"""The connection of entities that name none."""

HISTORY = "history"
"""What follows an entity's name, after a dot, where all versions of its records are meant."""

QUERY = "query"
"""What follows a table's name, after a dot, in the name of the mapping of its query."""

_LONG = ("processtype", "settings")
"""Keys of which an entity of the long form has at least one."""

_RENAMED = {"order_by": "sequence_by", "from": "slices_from"}
_COLUMN_KEYS = {"type": "datatype", "rename": "newname"}
_SETTINGS = frozenset(EntitySettings.model_fields)


@dataclass(frozen=True, slots=True)
class LongForm:
    """The definitions that one entry of the short form stands for, by category, and its faults.

    If it has faults, the definitions are those of its valid part.
    """

    definitions: Sequence[tuple[str, RawDefinition]] = ()
    faults: tuple[Fault, ...] = ()


def is_short(declared: RawDefinition) -> bool:
    """Return whether an entity is written in the short form."""
    raw = declared.raw
    is_entry = bool(declared.path) and isinstance(declared.path[-1], str)
    return is_entry and not any(key in raw for key in _LONG) and not isinstance(raw.get("columns"), list)


def long_entity(declared: RawDefinition, prefix: str, registry: Registry) -> LongForm:
    """Return what an entity of the short form stands for.

    Args:
        declared: The entity.
        prefix: The prefix of system columns.
        registry: The kinds of checks.
    """
    raw, faults = _checked(declared, "entity", ShortEntity, registry)
    if raw is None or (declared.raw.keys() - raw.keys()) & {*IDENTITY, *PLACING}:
        return LongForm(faults=faults)
    long = _Long(declared)
    long.put(("id",), raw.get("id") or declared.name, "id")
    long.put(("connection",), raw.get("connection") or CONNECTION, "connection")
    long.put(("processtype",), raw.get("strategy") or ("merge" if raw.get("key") else "full"), "strategy")
    long.copy(raw, {key: key for key in EntityKeys.model_fields})
    _put_columns(long, raw, prefix)
    _put_settings(long, raw)
    found = [("entity", long.definition())]
    target = _Long(declared, raw={"kind": "entity", "entity": declared.name})
    found.append(("target", target.definition()))
    if checked := _column_documentation(raw.get("columns") or {}):
        reader = _reader(declared, declared.name, is_current=True)
        reader.put(("documentation", "columns"), checked, "columns")
        found.append(("mapping", reader.definition()))
    return LongForm(found, faults)


def _put_settings(long: _Long, raw: Mapping[str, Any]) -> None:
    for key in raw:
        name = _RENAMED.get(key, key)
        if name in _SETTINGS:
            long.put(("settings", name), raw[key], key)
    if "from" not in raw and "connection" not in raw:
        long.put(("settings", "bronze_path"), raw.get("bronze_path") or "${entity}", "bronze_path")
    if "connection" not in raw:
        long.put(("settings", "silver_path"), raw.get("silver_path") or "${destination}", "silver_path")
    form = format_of(str(raw.get("from") or ""))
    if form is not None and not {"format", "bronze_format"} & raw.keys():
        long.put(("settings", "format"), form, "from")
    deletes = str(raw.get("deletes") or "none").strip().lower()
    if deletes in ("snapshot", "window"):
        long.put(("settings", "delete_missing"), "true", "deletes")
    if deletes == "snapshot":
        long.put(("settings", "delete_scope"), "full", "deletes")
    if "time" not in raw:
        long.put(("settings", "time"), OF_NAME)


def _put_columns(long: _Long, raw: Mapping[str, Any], prefix: str) -> None:
    columns = {name: _as_map(each, "type") for name, each in (raw.get("columns") or {}).items()}
    origins: dict[str, tuple[str, ...]] = {name: ("columns", name) for name in columns}
    flag = flag_of(raw.get("deletes"))
    added = [(name, key) for key in ("key", "partition_by") for name in listed(raw.get(key))]
    renamed = {str(each.get("rename")) for each in columns.values() if each.get("rename")}
    for name, key in [*added, *([(flag, "deletes")] if flag else [])]:
        if name not in columns and name not in renamed:
            columns[name], origins[name] = {}, (key,)
    for index, (name, declared) in enumerate(columns.items()):
        at, origin = ("columns", index), origins[name]
        is_calculated = "expression" in declared
        long.put((*at, "newname" if is_calculated else "name"), name, *origin)
        for key, value in declared.items():
            if key != "checks":
                long.put((*at, _COLUMN_KEYS.get(key, key)), value, *origin, key)
        if name == flag:
            long.put((*at, "newname"), f"{prefix}deleted", "deletes")
            long.put((*at, "datatype"), declared.get("type") or "boolean", *origin, "type")
        names = {name, declared.get("rename")}
        roles = [Role.CALCULATED.value] if is_calculated else []
        for key, role in (("key", Role.BUSINESS_KEY), ("partition_by", Role.PARTITION)):
            if names & set(listed(raw.get(key))):
                roles.append(role.value)
        if roles:
            long.put((*at, "fieldroles"), roles, *origin)


def long_table(declared: RawDefinition, registry: Registry) -> LongForm:
    """Return what a table of the short form stands for."""
    raw, faults = _checked(declared, "table", ShortTable, registry)
    if raw is None:
        return LongForm(faults=faults)
    name = declared.name
    query = _Long(declared, f"{name}.{QUERY}")
    for key, value in _query_of(raw):
        query.put((key,), value, "sql" if "sql" in raw else "python")
    relation = _Long(declared, raw={"kind": "delta"})
    relation.copy(raw, {"table": "table", "description": "description", "key": "mergeKey"})
    if "location" in raw or "table" not in raw:
        relation.put(("location",), raw.get("location") or f"${{project.lake}}/gold/{name}", "location")
    if parts := listed(raw.get("partition_by")):
        fields = [{"name": part, "type": "string"} for part in parts]
        relation.put(("partitions",), fields, "partition_by")
    if documented := _table_documentation(raw):
        relation.put(("documentation", "columns"), documented, "checks" if "checks" in raw else "columns")
    reader = _Long(declared, raw={"kind": "relation", "relation": name})
    target = _Long(declared, raw={"kind": "relation", "mapping": query.name, "relation": name})
    target.copy(raw, {key: key for key in ("mode", "buildPolicy", "description")})
    return LongForm(
        [
            ("mapping", query.definition()),
            ("relation", relation.definition()),
            ("mapping", reader.definition()),
            ("target", target.definition()),
        ],
        faults,
    )


def _query_of(raw: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if (sql := raw.get("sql")) is not None:
        is_file = sql.strip().lower().endswith(".sql") and not re.search(r"\s", sql.strip())
        yield from (("kind", "sql"), ("file" if is_file else "sql", sql.strip()))
        return
    module, _, function = raw["python"].partition(":")
    yield from (("kind", "python"), ("function", function))
    yield "file", module if module.endswith(".py") else f"{module.replace('.', '/')}.py"
    yield "inputs", [*listed(raw.get("inputs"))]


def _column_documentation(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": _as_map(each, "type").get("rename") or name, "checks": each["checks"]}
        for name, each in columns.items()
        if isinstance(each, Mapping) and each.get("checks")
    ]


def _table_documentation(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    columns = {name: _as_map(each, "description") for name, each in (raw.get("columns") or {}).items()}
    for name, checks in (raw.get("checks") or {}).items():
        own = columns.setdefault(name, {})
        columns[name] = {**own, "checks": [*listed(own.get("checks")), *listed(checks)]}
    return [{"name": name, **each} for name, each in columns.items()]


def entity_readers(entity: RawDefinition) -> Iterator[RawDefinition]:
    """Yield the mappings by which queries read an entity: its current rows, and all versions."""
    yield _reader(entity, entity.name, is_current=True).definition()
    yield _reader(entity, f"{entity.name}.{HISTORY}", is_current=False).definition()


def _reader(entity: RawDefinition, name: str, *, is_current: bool) -> _Long:
    current = {"current": "true"} if is_current else {}
    raw = {"kind": "relation", "relation": {"kind": "entity", "entity": entity.name, **current}}
    return _Long(entity, name, raw)


def _checked(
    declared: RawDefinition, word: str, model: type[SnakeModel], registry: Registry
) -> tuple[Mapping[str, Any] | None, tuple[Fault, ...]]:
    """Return what is valid of an entry, or None, and its faults."""

    def locate(path: ValuePath) -> Location:
        return declared.at(*path)

    def validate(raw: Any) -> SnakeModel:
        return model.model_validate(raw, context={"registry": registry})

    try:
        validate(declared.raw)
    except ValidationError as error:
        if faults := faults_of(error, f"{word} {declared.name!r}", locate, is_rendered=False):
            part = valid_part(declared.raw, validate)
            return part and part[0], faults
    return declared.raw, ()


def _as_map(declared: Any, key: str) -> dict[str, Any]:
    """Return the map that a single text stands for."""
    if isinstance(declared, Mapping):
        return {name: value for name, value in declared.items() if value is not None}
    return {} if declared is None else {key: declared}


@dataclass(slots=True)
class _Long:
    """A definition in the making, whose values keep the lines of those that they were made from."""

    declared: RawDefinition
    name: str = ""
    raw: dict[str, Any] = field(default_factory=dict)
    origins: dict[ValuePath, ValuePath] = field(default_factory=dict)

    def put(self, path: tuple[str | int, ...], value: Any, *origin: str) -> None:
        """Set a value at a path; `origin` is the path in the short form that a reader looks at."""
        place: Any = self.raw
        for step, following in pairwise(path):
            if isinstance(place, list):
                while len(place) <= int(step):
                    place.append({})
                place = place[int(step)]
            else:
                place = place.setdefault(step, [] if isinstance(following, int) else {})
        place[path[-1]] = value
        self.origins[path] = origin

    def copy(self, raw: Mapping[str, Any], names: Mapping[str, str]) -> None:
        """Set what the short form has, under the names that the long form has for its keys."""
        for short, long in names.items():
            if short in raw:
                self.put((long,), raw[short], short)

    def definition(self) -> RawDefinition:
        """Return the definition, with the places of the short form."""
        document = ParsedFile(self.declared.document.file, self.raw, lambda: self._lines((), self.raw))
        return RawDefinition(self.name or self.declared.name, self.raw, document, ())

    def _lines(self, path: ValuePath, value: Any) -> Lines:
        line = self.declared.at(*self.origins.get(path, ())).line or 1
        if isinstance(value, Mapping):
            inner = {key: self._lines((*path, key), each) for key, each in value.items()}
        elif isinstance(value, list):
            inner = {index: self._lines((*path, index), each) for index, each in enumerate(value)}
        else:
            return Lines(line)
        known = [each.line for each in inner.values()]
        return Lines(line if path in self.origins or not path or not known else min(known), inner)
