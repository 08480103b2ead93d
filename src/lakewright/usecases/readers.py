"""Which targets are built from an entity's table, as they are declared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.errors.phrase import Command, Phrase
from lakewright.spec.words import first_of
from lakewright.targets.lease import table_resource
from lakewright.targets.relation import RelationTarget
from lakewright.targets.target import Target
from lakewright.usecases.declared_nodes import nodes_of_job, offline_lake, sample_workspace

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.plan.graph import Node
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.job import Job

__all__ = ["readers", "readers_of", "readers_words", "views_of"]

MOST_NAMED = 3


def readers_of(app: App, entity: Entity) -> dict[str, frozenset[str]]:
    """Return the names of the targets that are built from an entity's table, by job; of valid jobs only.

    Views are left out, which hold no rows, but not what is built from them.
    """
    nodes = {job.name: tuple(nodes_of_job(app, job.name)) for job in app.project.jobs.values()}
    changed = {table_resource(entity.places(app.project.lake).silver)}
    found: dict[str, frozenset[str]] = {}
    while True:
        before, found = (
            found,
            {
                job: frozenset(
                    node.name
                    for node in of_job
                    if not _is_of_entity(app, node)
                    and any(each.intersects(other) for each in node.requires for other in changed)
                )
                for job, of_job in nodes.items()
            },
        )
        if found == before:
            return {job: names - views_of(app, app.project.jobs[job], names) for job, names in found.items()}
        for job, of_job in nodes.items():
            changed.update(*(node.provides for node in of_job if node.name in found[job]))


def readers(app: App, entity: Entity) -> tuple[str, ...]:
    """Return the names of the targets that are built from an entity's table, of all valid jobs."""
    return tuple(sorted(frozenset().union(*readers_of(app, entity).values())))


def readers_words(names: Sequence[str]) -> str | None:
    """Return that what is built from a table is to be built again; None if nothing is."""
    if not names:
        return None
    return Phrase(f"built from it: {first_of(names, MOST_NAMED)}; ", Command("plan"), " names what is stale")


def views_of(app: App, job: Job, names: Iterable[str]) -> frozenset[str]:
    """Return those of a job's targets that are views."""
    found: set[str] = set()
    if not names:
        return frozenset(found)
    workspace = sample_workspace(app.project, job, offline_lake(app))
    for name in names:
        with suppress(LakewrightError):  # a wrong definition is told by itself
            target = Target.named(workspace, name)
            if isinstance(target, RelationTarget) and target.is_view(workspace):
                found.add(name)
    return frozenset(found)


def _is_of_entity(app: App, node: Node) -> bool:
    """Return whether a target processes slices: what it has to do follows from the manifest alone."""
    definition = app.project.targets.get(node.name)
    return definition is not None and definition.kind == "entity"
