"""The definitions of a project: list a section, or show one definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.spec.expressions.secrets import HIDDEN, is_secret_header, is_secret_name
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.job import Job
from lakewright.spec.suggestions import suggestion

__all__ = ["list_section", "show_definition"]

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
