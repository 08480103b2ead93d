"""`lakewright ls`: what the project declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.page import Table, line

if TYPE_CHECKING:
    from lakewright.spec.project import Project

__all__ = ["ls"]


@command(
    examples=["lakewright ls jobs", "lakewright ls entities -o json"],
)
@click.argument("section", type=click.Choice(["jobs", "targets", "entities", "relations", "mappings"]))
@click.pass_obj
def ls(call: Call, /, section: str) -> None:
    """List the jobs, targets, entities, relations or mappings of the project."""
    rows = _rows(call.app.project, section)
    columns = tuple(rows[0]) if rows else ()
    table = Table(columns, tuple(tuple(line(_shown(value)) for value in row.values()) for row in rows))
    call.output.result(rows, [table if rows else line(f"no {section}")])


def _rows(project: Project, section: str) -> list[dict[str, Any]]:
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


def _job(name: str, job: Any) -> dict[str, Any]:
    return {
        "name": name,
        "parameters": [parameter.name for parameter in job.parameters],
        "targets": list(job.targets),
        "description": job.description,
    }


def _entity(name: str, entity: Any) -> dict[str, Any]:
    return {
        "name": name,
        "id": entity.id,
        "strategy": str(entity.strategy),
        "connection": entity.connection,
        "group": entity.group,
        "destination": entity.destination,
        "enabled": entity.enabled,
    }


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
