"""The definitions of a project: list a section, show one definition, or the types of an entity's columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.lake.observation import observe_table
from lakewright.spec.expressions.secrets import HIDDEN, is_secret_header, is_secret_name
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.job import Job
from lakewright.spec.suggestions import suggestion
from lakewright.transform.system_columns import SystemColumns

__all__ = ["entity_types", "list_section", "show_definition"]

SECTIONS = {
    "job": "jobs",
    "target": "targets",
    "entity": "entities",
    "relation": "relations",
    "mapping": "mappings",
    "connection": "connections",
}
"""The sections of a project, each by the word for one definition in it."""


def list_section(app: App, section: str) -> list[dict[str, Any]]:
    """Return the definitions in a section of the project: jobs, entities, targets, relations or mappings."""
    project = app.project
    if section == "jobs":
        return [_job(name, job) for name, job in project.jobs.items()]
    if section == "entities":
        return [_entity(name, entity) for name, entity in project.entities.items()]
    definitions: Mapping[str, Any] = getattr(project, section)
    return [
        {
            "name": name,
            "kind": found.kind,
            "location": str(found.at()),
            "description": found.raw.get("description"),
        }
        for name, found in definitions.items()
    ]


def show_definition(app: App, category: str, name: str) -> dict[str, Any]:
    """Return one definition of the project with its location, without secrets.

    An entity includes the settings of its connection.

    Raises:
        UsageError: The project has no definition of this name.
        SpecError: It has a fault.
    """
    section: Mapping[str, Any] = getattr(app.project, SECTIONS[category])
    found = section.get(name)
    if found is None:
        if (faulty := app.project.faulty_error(category, name)) is not None:
            raise faulty
        raise UsageError(f"there is no {category} {name!r}", remedy=suggestion(name, section))
    if category in ("job", "entity"):
        declared = found.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        location = None
    else:
        declared, location = found.raw, str(found.at())
    return {
        "category": category,
        "name": name,
        "location": location,
        "definition": _without_secrets(declared),
    }


def _job(name: str, job: Job) -> dict[str, Any]:
    return {
        "name": name,
        "parameters": [parameter.name for parameter in job.parameters],
        "targets": list(job.targets),
        "description": job.description,
    }


def _entity(name: str, entity: Entity) -> dict[str, Any]:
    return {
        "name": name,
        "id": entity.id,
        "strategy": str(entity.strategy),
        "connection": entity.connection,
        "group": entity.group,
        "destination": entity.destination,
        "enabled": entity.enabled,
    }


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        # A parameter has its name and its default side by side.
        hidden = "default" if is_secret_name(str(value.get("name", ""))) else None
        return {
            key: HIDDEN
            if isinstance(inner, str) and (key == hidden or _is_secret(str(key)))
            else _without_secrets(inner)
            for key, inner in value.items()
        }
    return [_without_secrets(inner) for inner in value] if isinstance(value, list | tuple) else value


def _is_secret(key: str) -> bool:
    return is_secret_name(key) or is_secret_header(key)


def entity_types(app: App, name: str) -> dict[str, Any]:
    """Return the columns of an entity's table with their types, and what gave them: without Spark.

    `origin` is `declared`, `inferred` for a type that the first slice with the column gave it, and to which
    later slices are held, or `system`. `declared` is the declared type if the table keeps another one.
    Without a table, only declared columns are known.

    Raises:
        UsageError: The project has no such entity.
    """
    entity = app.project.entities.get(name)
    if entity is None:
        raise UsageError(f"there is no entity {name!r}", remedy=suggestion(name, app.project.entities))
    return {"entity": name, "columns": list(_typed_columns(app, entity))}


def _typed_columns(app: App, entity: Entity) -> Iterator[dict[str, Any]]:
    settings = app.lake.settings
    system = SystemColumns(settings.systemfield_prefix, entity.destination).all
    state = observe_table(app.lake, entity.places(settings).silver)
    declared = {each.silver.lower(): each for each in entity.columns if not each.omit}
    for kept in state.columns:
        column = declared.pop(kept.name.lower(), None)
        own = None if column is None else column.type
        origin = "system" if kept.name.lower() in system else "inferred" if own is None else "declared"
        other = None if own is None or own.ddl == kept.type.ddl else own.ddl
        yield {"column": kept.name, "type": kept.type.ddl, "origin": origin, "declared": other}
    for column in declared.values():
        kind = None if column.type is None else column.type.ddl
        yield {
            "column": column.silver,
            "type": kind,
            "origin": None if kind is None else "declared",
            "declared": None,
        }
