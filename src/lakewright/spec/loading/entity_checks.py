"""Checks of entities that concern several of them, their connections or the lake."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from lakewright.errors import Fault, Location, SpecError
from lakewright.spec.definitions.definition import Definition
from lakewright.spec.expressions.expression import names_used
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import as_flag
from lakewright.spec.models.base import Named
from lakewright.spec.models.entity import SETTINGS_PREFIX, Entity, Strategy
from lakewright.spec.models.entity_settings import PLACE_TEMPLATES, EntitySettings, SourceConnection
from lakewright.spec.models.lake import PATH_TEMPLATES, LakeSettings
from lakewright.spec.models.places import Address, Places
from lakewright.spec.reading.sections import RawDefinition
from lakewright.spec.suggestions import SLIP, meant, nearest
from lakewright.spec.words import counted


def merge_connections(
    entities: Mapping[str, RawDefinition], connections: Mapping[str, RawDefinition]
) -> dict[str, RawDefinition]:
    """Return the entities with settings inherited from connections. Disabled connections disable them."""
    return {name: _merged(entity, connections) for name, entity in entities.items()}


def _merged(entity: RawDefinition, connections: Mapping[str, RawDefinition]) -> RawDefinition:
    connection = connections.get(str(entity.raw.get("connection")))
    shared = connection.raw.get("settings") if connection else None
    own = entity.raw.get("settings")
    raw: dict[str, Any] = dict(entity.raw)
    if isinstance(shared, dict) and (own is None or isinstance(own, dict)):
        raw["settings"] = {**_not_overridden(shared, own or {}), **(own or {})}
    if connection and as_flag(connection.raw.get("enabled")) is False:
        raw["enabled"] = "false"
    return replace(entity, raw=raw, shared=connection)


def reported_once(faults: Iterable[Fault]) -> list[Fault]:
    """Return faults so that one which several definitions have in the same place is reported once.

    Entities inherit the settings of their connection, and definitions those of a template.
    """
    alike: dict[tuple[Location | None, str, bool], list[Fault]] = {}
    for fault in faults:
        is_prefixed = fault.problem is not None
        alike.setdefault((fault.location, fault.problem or fault.message, is_prefixed), []).append(fault)
    return [_at_first_place(each) for each in alike.values()]


def _at_first_place(faults: Sequence[Fault]) -> Fault:
    first, more = faults[0], len({fault.message for fault in faults}) - 1
    if not more:
        return first
    return replace(first, message=f"{first.subject} and {counted(more, 'other')}: {first.problem}")


def _not_overridden(shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a connection's settings without the format of slices if the entity has its own."""
    form = own.get("format")
    dropped = set()
    if isinstance(form, str) or (isinstance(form, Mapping) and "kind" in form):
        dropped.add("bronze_format")
    if own.get("bronze_format") and form is None:
        dropped.add("format")
    return {key: value for key, value in shared.items() if key not in dropped}


def check_entities(
    definitions: Mapping[str, Definition],
    models: Mapping[str, Named],
    lake: LakeSettings | None,
    scope: Scope,
    faults: MutableSequence[Fault],
) -> None:
    """Add faults for ids, column names and places of entities. Two entities may not have the same table."""
    first_with_id: dict[str, Definition] = {}
    first_known_as: dict[tuple[str, str], Definition] = {}
    owners: dict[str, Definition] = {}
    for name, definition in definitions.items():
        entity = cast("Entity | None", models.get(name)) or _reduced(definition)
        if entity is None:
            continue
        other = first_with_id.setdefault(entity.id, definition)
        if other is not definition:
            message = f"the id {entity.id!r} is already that of entity {other.name!r} at {other.at('id')}"
            remedy = "Give each entity its own id."
            faults.append(definition.fault(message, "id", remedy=remedy, touches=[other.key]))
        known = first_known_as.setdefault((entity.identity, entity.destination), definition)
        if known is not definition and (entity.moved_from or "moved_from" in known.raw):
            message = f"entity {known.name!r} at {known.at()} was {entity.identity!r} before, too"
            remedy = "Only one of them can have its slices and its table."
            faults.append(definition.fault(message, remedy=remedy, touches=[known.key]))
            continue
        if lake is None:
            continue
        found, places = check_places(definition, entity, lake, scope)
        faults.extend(found)
        if places is not None and entity.enabled:
            faults.extend(_shared_table_faults(definition, places.silver, owners))


def _reduced(definition: Definition) -> Entity | None:
    """Return an invalid entity reduced to its id and places, or None if these are invalid too."""
    if not isinstance(definition.raw.get("settings") or {}, Mapping):
        return None
    own = _settings_of(definition)
    raw = {key: definition.raw[key] for key in IDENTITY if key in definition.raw}
    settings = {key: own[key] for key in own if key in PLACING or key not in EntitySettings.model_fields}
    part = replace(definition, raw={**raw, "processtype": Strategy.FULL.value, "settings": settings})
    return cast("Entity | None", part.check()[0])


_OF_DELETES = frozenset(("delete_scope", "delete_floor", "max_delete_ratio"))
_COLUMNS = frozenset(("sequence_by", "hash_exclude"))
IDENTITY = ("id", "name", "moved_from", "destination", "connection", "enabled", "secure")
PLACING = frozenset((*PLACE_TEMPLATES, "output_method"))


def _shared_table_faults(
    definition: Definition, silver: Address, owners: dict[str, Definition]
) -> Iterator[Fault]:
    """Yield a fault if another entity has the same table, or one table lies inside the other."""
    place = str(silver) if silver.name is None else silver.name.lower()
    for taken, other in owners.items():
        if place == taken or place.startswith(f"{taken}/") or taken.startswith(f"{place}/"):
            how = "is also that of" if place == taken else "and the table of"
            rest = "" if place == taken else " lie one inside of the other"
            where = other.at(*_table_key(other))
            message = f"the silver table {silver} {how} entity {other.name!r} at {where}{rest}"
            remedy = "Give each entity its own destination, silver_path or silver_table."
            yield definition.fault(message, *_table_key(definition), remedy=remedy, touches=[other.key])
            return
    owners[place] = definition


def _table_key(definition: Definition) -> tuple[str, ...]:
    """Return the path of the key that determines the entity's table, in the entity itself."""
    keys = (("settings", "silver_table"), ("settings", "silver_path"), ("destination",))
    return next((key for key in keys if definition.document.has((*definition.path, *key))), ())


def check_settings(
    entities: Mapping[str, Definition],
    connections: Mapping[str, Definition],
    lake: LakeSettings | None,
    warnings: MutableSequence[Fault],
) -> None:
    """Add a warning for each setting that nothing uses, or that has no effect.

    Settings of deletes have none without `delete_missing`. Names of columns that are almost a declared one
    are reported as well; others may be columns that are not declared.

    A key is used if Lakewright knows it, or if the template of a place reads it. One that several definitions
    have gives one warning, at the first; one that entities inherit, at their connection. A connection also
    describes its source for loaders: there, only keys that resemble a known one give a warning.
    """
    used = _used_settings([*entities.values(), *connections.values()], lake)
    unused: dict[str, list[Definition]] = {}
    for definition, settings in _own_settings(entities, connections):
        is_connection = definition.model is SourceConnection
        for key in settings.keys() - used:
            if not is_connection or meant(key, EntitySettings.model_fields, cutoff=SLIP):
                unused.setdefault(key, []).append(definition)
        if settings.get("bronze_table"):
            remedy = "Slices are files or folders below the bronze path. Put them there."
            message, place = "bronze_table has no effect", ("settings", "bronze_table")
            warnings.append(definition.fault(message, *place, remedy=remedy))
        if not is_connection:
            warnings.extend(_idle_settings(definition, settings))
            warnings.extend(_misspelt_columns(definition, settings))
            if lake is not None:
                warnings.extend(_misspelt_flags(definition, lake.systemfield_prefix))
    warnings.extend(_unused_setting(key, unused[key]) for key in sorted(unused))


def _idle_settings(definition: Definition, settings: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the settings that an entity has itself and that have no effect without `delete_missing`."""
    if as_flag(_settings_of(definition).get("delete_missing", "false")) is False:
        for key in _OF_DELETES & settings.keys():
            message = f"{key} has no effect, as delete_missing is not set"
            remedy = "Set delete_missing: true if records that a slice lacks are deleted, or remove it."
            yield definition.fault(message, "settings", key, remedy=remedy)


def _misspelt_columns(definition: Definition, settings: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the settings that name a column which is not declared, but almost one that is."""
    listed = _columns_of(definition)
    known = [str(each[key]) for each in listed for key in ("name", "newname") if each.get(key)]
    lower = {name.lower() for name in known}
    for key in _COLUMNS & settings.keys():
        value = settings[key]
        for name in value if isinstance(value, list) else [value]:
            is_known = not isinstance(name, str) or name.lower() in lower
            found = None if is_known else nearest(name, known, cutoff=SLIP)
            if found is not None and _without_number(name) != _without_number(found):
                message = f"{key} names the column {name!r}, which is not declared"
                yield definition.fault(message, "settings", key, remedy=f"did you mean {found!r}?")


def _misspelt_flags(definition: Definition, prefix: str) -> Iterator[Fault]:
    """Yield the columns whose name is almost that of the flag of soft deletes, by which no row is deleted."""
    flag = f"{prefix}deleted"
    for index, column in enumerate(_columns_of(definition)):
        key = "newname" if column.get("newname") else "name"
        name = str(column.get(key) or "")
        is_like = bool(prefix) and name.lower().startswith(prefix.lower()) and name.lower() != flag.lower()
        if is_like and nearest(name, [flag], cutoff=SLIP):
            message = f"the column {name!r} is no flag of deletes"
            yield definition.fault(message, "columns", index, key, remedy=f"did you mean {flag!r}?")


def _columns_of(definition: Definition) -> list[Mapping[str, Any]]:
    columns = definition.raw.get("columns")
    return [each for each in columns if isinstance(each, Mapping)] if isinstance(columns, list) else []


def _without_number(name: str) -> str:
    """Return a name without digits: `address_2` is not `address_1`, misspelt."""
    return re.sub(r"_?\d+", "", name.lower())


def _own_settings(
    entities: Mapping[str, Definition], connections: Mapping[str, Definition]
) -> Iterator[tuple[Definition, Mapping[str, Any]]]:
    """Yield each connection and entity with the settings that it has itself."""
    for connection in connections.values():
        if connection.model is SourceConnection:
            yield connection, _settings_of(connection)
    for entity in entities.values():
        shared = connections.get(str(entity.raw.get("connection")))
        inherited = _settings_of(shared) if shared is not None else {}
        own = _settings_of(entity).items()
        yield entity, {key: value for key, value in own if inherited.get(key, _ABSENT) != value}


def _used_settings(definitions: Iterable[Definition], lake: LakeSettings | None) -> set[str]:
    """Return the keys that Lakewright knows, and those that the templates of places read."""
    found = [_settings_of(definition).get(key) for definition in definitions for key in PLACE_TEMPLATES]
    of_lake = [] if lake is None else [getattr(lake, key) for key in PATH_TEMPLATES]
    used = set(EntitySettings.model_fields)
    for template in {each for each in (*found, *of_lake) if isinstance(each, str)}:
        names = names_used(template)  # the entity's places report invalid expressions
        used.update(n.removeprefix(SETTINGS_PREFIX) for n in names if n.startswith(SETTINGS_PREFIX))
    return used


def _unused_setting(key: str, definitions: Sequence[Definition]) -> Fault:
    first, more = definitions[0], len(definitions) - 1
    others = f" and {counted(more, 'other')}" if more else ""
    known = meant(key, EntitySettings.model_fields, cutoff=SLIP)
    remedy = known or f"Remove it; a path may read it as ${{settings_{key}}}."
    where = first.at("settings", key)
    return Fault(f"{first.subject}{others}: nothing uses the setting {key!r}", where, remedy)


def _settings_of(definition: Definition) -> Mapping[str, Any]:
    found = definition.raw.get("settings")
    return found if isinstance(found, Mapping) else {}


def check_places(
    definition: Definition, entity: Entity, lake: LakeSettings, scope: Scope
) -> tuple[list[Fault], Places | None]:
    """Return the faults of an entity in its lake, and its places if they are known already."""
    faults = [
        definition.fault(problem, "columns", index, remedy="Give it a newname.")
        for index, problem in entity.reserved_name_problems(lake.systemfield_prefix)
    ]
    if not lake.root_folder:
        remedy = "Declare it: lake: {root_folder: …}."
        return [*faults, definition.fault("the lake has no root_folder", remedy=remedy)], None
    try:
        if unknown := entity.unknown_names(lake, scope):
            return [*faults, *_missing_setting_faults(definition, entity, unknown)], None
        places = entity.within(scope).places(lake)
    except SpecError as error:
        found = definition.fault(error.message, "settings", remedy=error.remedy)
        return [*faults, replace(found, location=error.location or found.location)], None
    inside = [] if entity.settings.slices_from else [places.bronze]
    inside += [] if places.silver.location is None else [places.silver.location]
    return faults + _symlink_faults(definition, inside, lake.root_folder), places


def _missing_setting_faults(
    definition: Definition, entity: Entity, unknown: Mapping[str, frozenset[str]]
) -> Iterator[Fault]:
    """Yield a fault for each missing setting that a template uses. A job may provide other names."""
    known = [
        name.removeprefix(SETTINGS_PREFIX)
        for name in entity.template_names()
        if name.startswith(SETTINGS_PREFIX)
    ]
    for key, names in unknown.items():
        for name in sorted(names):
            if name.startswith(SETTINGS_PREFIX):
                why = f"{key} uses {name}, but there is no such setting with a text or number"
                setting = name.removeprefix(SETTINGS_PREFIX)
                add = f"Add the setting {setting!r} to the entity or its connection."
                yield definition.fault(why, "settings", key, remedy=meant(setting, known) or add)


_ABSENT = object()


def _symlink_faults(definition: Definition, places: Sequence[str], root: str) -> list[Fault]:
    """Return a fault for each of these local places that leaves the root folder by a symbolic link."""
    if "://" in root:
        return []
    real = Path(root.removeprefix("file:")).resolve()
    remedy = "Remove the link, or use its target as the root folder."
    return [
        definition.fault(f"{place!r} leaves the root folder through a symbolic link", remedy=remedy)
        for place in places
        if not Path(place).resolve().is_relative_to(real)
    ]
