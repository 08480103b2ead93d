"""Targets that read an entity's table: they are dirty once the table has gone back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from lakewright.app import App
from lakewright.errors import LakewrightError
from lakewright.manifest.journal import TargetPhase
from lakewright.plan.phase import Phase
from lakewright.targets.lease import table_resource
from lakewright.usecases.draw_graph import declared_nodes, offline_lake, sample_workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakewright.manifest.store import Put
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.job import Job

__all__ = ["downstream_taints"]

RUNS = 100
"""Number of a job's last runs in which instances of the targets are looked for."""


def downstream_taints(app: App, entity: Entity, reason: str) -> tuple[Put, ...]:
    """Return the taints of all targets that read an entity's table, in each instance that was run.

    Args:
        app: The project.
        entity: The entity.
        reason: Why they are dirty.
    """
    found: dict[str, Put] = {}
    for job in app.project.jobs.values():
        names = _readers(app, job, entity)
        for name, parameters in _instances(app, job, names) if names else ():
            put = TargetPhase(app.project.name, name, Phase.BUILD.value, parameters).tainted(reason)
            found[put.key] = put
    return tuple(found.values())


def _readers(app: App, job: Job, entity: Entity) -> frozenset[str]:
    """Return the names of a job's targets that read an entity's table; none if the job is not valid."""
    silver = table_resource(entity.places(app.project.lake).silver)
    try:
        workspace = sample_workspace(app.project, job, offline_lake(app))
        nodes = list(declared_nodes(workspace, job.target_names(workspace.scope), Phase.BUILD))
    except LakewrightError:
        return frozenset()
    reading = (node for node in nodes if any(each.intersects(silver) for each in node.requires))
    return frozenset(node.name for node in reading)


def _instances(app: App, job: Job, names: frozenset[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the targets of these names with the parameters of each instance that was run."""
    runs = app.journal.runs(project=app.project.name, job=job.name)
    for run in islice(runs, RUNS):
        for result in app.journal.targets(run.run_id):
            if result.get("name") in names and result.get("phase") == Phase.BUILD.value:
                yield result["name"], result.get("instance", {})
