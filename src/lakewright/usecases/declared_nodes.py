"""What targets require and provide as they are declared, and which of them read a table; without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from lakewright.app import App
from lakewright.errors import LakewrightError, NotInstalled
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.lake import Lake
from lakewright.plan.graph import Node
from lakewright.plan.phase import Phase
from lakewright.run.planning import node_of
from lakewright.spark.conf import SessionSettings
from lakewright.spark.session import NoSession
from lakewright.spec.arguments import expand_arguments, sample_arguments
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.models.job import Job
from lakewright.spec.project import Project
from lakewright.spec.words import first_of
from lakewright.targets.lease import table_resource
from lakewright.targets.relation import RelationTarget
from lakewright.targets.target import Target
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity


def sample_workspace(project: Project, job: Job, lake: Lake, arguments: Sequence[str] = ()) -> Workspace:
    """Return the workspace of a job's first instance; parameters without a value get one of their type.

    Raises:
        SpecError: An argument, a default or an expression is wrong.
    """
    scope = sample_scope(project, job, arguments)
    return Workspace(project.within(scope), scope, lake)


def sample_scope(project: Project, job: Job, arguments: Sequence[str] = ()) -> Scope:
    """Return the names of a job's first instance; parameters without a value get one of their type.

    Raises:
        SpecError: An argument, a default or an expression is wrong.
    """
    given = {argument.partition("=")[0].partition(":")[0] for argument in arguments}
    missing = [parameter for parameter in job.parameters if parameter.name not in given]
    known = [*arguments, *sample_arguments(missing)]
    instance = expand_arguments(job.parameters, known, project.job_scope(job))[0]
    return project.job_scope(job, instance)


def declared_nodes(workspace: Workspace, names: Sequence[str], phase: Phase) -> Iterator[Node]:
    """Yield what each target requires and provides in a phase; those that only Spark knows are left out."""
    for name in names:
        try:
            target = Target.named(workspace, name)
            if target.enabled and phase in target.phases_in(workspace):
                yield node_of(target, workspace, phase)
        except LakewrightError:
            continue


def _nodes_of_job(app: App, job: Job) -> list[Node]:
    """Return what targets of a job require and provide in BUILD; none if its scope is wrong."""
    try:
        workspace = sample_workspace(app.project, job, offline_lake(app))
        names = job.target_names(workspace.scope)
    except LakewrightError:
        return []
    return list(declared_nodes(workspace, names, Phase.BUILD))


def offline_lake(app: App) -> Lake:
    """Return the lake as far as it is known without Spark."""
    refused = NotInstalled("a graph starts no Spark", remedy="Name a phase and parameters.")
    return Lake(app.project.lake, SessionSettings(app.project.basedir), sessions=NoSession(refused))


MOST_NAMED = 3


def readers(app: App, entity: Entity) -> tuple[str, ...]:
    """Return the names of the targets that are built from an entity's table, of all valid jobs.

    Views are left out, which hold no rows, but not what is built from them.
    """
    nodes = {job.name: _nodes_of_job(app, job) for job in app.project.jobs.values()}
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
            break
        for job, of_job in nodes.items():
            changed.update(*(node.provides for node in of_job if node.name in found[job]))
    shown = (names - _views_of(app, app.project.jobs[job], names) for job, names in found.items())
    return tuple(sorted(frozenset().union(*shown)))


def readers_words(names: Sequence[str]) -> str | None:
    """Return that what is built from a table is to be built again; None if nothing is."""
    if not names:
        return None
    return Phrase(f"built from it: {first_of(names, MOST_NAMED)}; ", Command("plan"), " names what is stale")


def _views_of(app: App, job: Job, names: Iterable[str]) -> frozenset[str]:
    """Return those of a job's targets that are views."""
    found: set[str] = set()
    if not names:
        return frozenset(found)
    workspace = sample_workspace(app.project, job, offline_lake(app))
    for name in names:
        with suppress(LakewrightError):  # a wrong definition is reported separately
            target = Target.named(workspace, name)
            if isinstance(target, RelationTarget) and target.is_view(workspace):
                found.add(name)
    return frozenset(found)


def _is_of_entity(app: App, node: Node) -> bool:
    """Return whether a target processes slices: what it has to do follows from the manifest alone."""
    definition = app.project.targets.get(node.name)
    return definition is not None and definition.kind == "entity"
