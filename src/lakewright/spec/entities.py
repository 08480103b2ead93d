"""What is checked of entities when a project is loaded, beyond each one's own fields."""

from __future__ import annotations

from collections.abc import Mapping, MutableSequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from lakewright.errors import Fault, SpecError
from lakewright.spec.definition import Definition
from lakewright.spec.entity import Entity
from lakewright.spec.lake import LakeSettings
from lakewright.spec.model import Named
from lakewright.spec.places import Places
from lakewright.spec.scope import Scope
from lakewright.spec.sections import Declared

__all__ = ["check_entities", "merge_connections"]


def merge_connections(
    entities: Mapping[str, Declared], connections: Mapping[str, Declared]
) -> dict[str, Declared]:
    """Return the entities with their connections' settings below their own; a disabled one disables them."""
    return {name: _merged(entity, connections) for name, entity in entities.items()}


def _merged(entity: Declared, connections: Mapping[str, Declared]) -> Declared:
    connection = connections.get(str(entity.raw.get("connection")))
    shared = connection.raw.get("settings") if connection else None
    own = entity.raw.get("settings")
    raw: dict[str, Any] = dict(entity.raw)
    if isinstance(shared, dict) and (own is None or isinstance(own, dict)):
        raw["settings"] = {**shared, **(own or {})}
    if connection and str(connection.raw.get("enabled") or "true").strip().lower() in (
        "false",
        "no",
        "off",
        "0",
    ):
        raw["enabled"] = "false"
    return replace(entity, raw=raw)


def check_entities(
    definitions: Mapping[str, Definition],
    models: Mapping[str, Named],
    lake: LakeSettings | None,
    scope: Scope,
    *,
    faults: MutableSequence[Fault],
    warnings: MutableSequence[Fault],
) -> None:
    """Add what is wrong with ids, names and places, and warn of settings that are nearly known ones."""
    first_with_id: dict[str, Definition] = {}
    for name, definition in definitions.items():
        entity = cast("Entity | None", models.get(name))
        if entity is None:
            continue
        other = first_with_id.setdefault(entity.id, definition)
        if other is not definition:
            first = f"entity {other.name!r} at {other.at('id')}"
            message = f"{definition.subject}: the id {entity.id!r} is that of {first}"
            faults.append(Fault(message, definition.at("id"), "Give each entity an id of its own."))
        for key, known in entity.settings.likely_misspelt():
            message = f"{definition.subject}: the setting {key!r} has no meaning"
            warnings.append(Fault(message, definition.at("settings", key), f"did you mean {known!r}?"))
        if lake is not None:
            faults.extend(_against_lake(definition, entity, lake, scope))


def _against_lake(definition: Definition, entity: Entity, lake: LakeSettings, scope: Scope) -> list[Fault]:
    faults = [
        Fault(f"{definition.subject}: {problem}", definition.at("columns", index), "Give it a newname.")
        for index, problem in entity.reserved_name_problems(lake.systemfield_prefix)
    ]
    if not lake.root_folder:
        why = f"{definition.subject}: the lake has no root_folder"
        return [*faults, Fault(why, definition.at(), "Declare it: lake: {root_folder: …}.")]
    try:
        if entity.unknown_names(lake, scope):
            return faults
        places = entity.within(scope).places(lake)
    except SpecError as error:
        fault = error.faults[0]
        return [
            *faults,
            Fault(
                f"{definition.subject}: {fault.message}",
                fault.location or definition.at("settings"),
                fault.remedy,
            ),
        ]
    return faults + _beyond_links(definition, places, lake.root_folder)


def _beyond_links(definition: Definition, places: Places, root: str) -> list[Fault]:
    """Return a fault for each local place that a symbolic link leads out of the root folder."""
    if "://" in root:
        return []
    real = Path(root.removeprefix("file:")).resolve()
    remedy = "Remove the link, or make its target the root folder."
    return [
        Fault(
            f"{definition.subject}: {place!r} leads out of the root folder by a link", definition.at(), remedy
        )
        for place in (places.bronze, places.silver.location)
        if place is not None and not Path(place).resolve().is_relative_to(real)
    ]
