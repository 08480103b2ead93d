"""What targets require and provide as they are declared, and which of them read a table; without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from lakewright.app import App
from lakewright.errors import LakewrightError, NotInstalled
from lakewright.lake.lake import Lake
from lakewright.plan.graph import Node
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.run.planning import node_of
from lakewright.spark.conf import SessionSettings
from lakewright.spark.session import NoSession
from lakewright.spec.arguments import expand_arguments, sample_arguments
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.models.job import Job
from lakewright.spec.project import Project
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


def sampled_jobs(
    project: Project, lake: Lake, report: Callable[[Job, LakewrightError], object] = lambda *_: None
) -> Iterator[tuple[Job, Workspace, tuple[str, ...]]]:
    """Yield each job whose scope is right, with the workspace of its first instance, and its targets.

    Args:
        project: The project.
        lake: The lake of the workspaces.
        report: Receives the jobs whose scope is wrong.
    """
    for job in project.jobs.values():
        try:
            workspace = sample_workspace(project, job, lake)
            names = job.target_names(workspace.scope)
        except LakewrightError as error:
            report(job, error)
            continue
        yield job, workspace, names


def offline_lake(project: Project) -> Lake:
    """Return the lake of a project as far as it is known without Spark."""
    refused = NotInstalled("what is only looked at starts no Spark", remedy="Name a phase and parameters.")
    return Lake(project.lake, SessionSettings(project.basedir), sessions=NoSession(refused))


def readers(app: App, entity: Entity) -> tuple[str, ...]:
    """Return the names of the targets that are built from an entity's table, of all valid jobs.

    Views are left out, which hold no rows, but not what is built from them.
    """
    left = [
        (workspace, node)
        for _, workspace, names in sampled_jobs(app.project, offline_lake(app.project))
        for node in declared_nodes(workspace, names, Phase.BUILD)
        if not _is_of_entity(app, node)
    ]
    changed = {table_resource(entity.places(app.project.lake).silver)}
    found: list[tuple[Workspace, Node]] = []
    while reached := [each for each in left if _reads(each[1], changed)]:
        found += reached
        left = [each for each in left if not _reads(each[1], changed)]
        changed.update(*(node.provides for _, node in reached))
    return tuple(sorted({node.name for workspace, node in found if not _is_view(workspace, node.name)}))


def _reads(node: Node, changed: Iterable[Resource]) -> bool:
    return any(each.intersects(other) for each in node.requires for other in changed)


def _is_view(workspace: Workspace, name: str) -> bool:
    target = Target.named(workspace, name)
    return isinstance(target, RelationTarget) and target.is_view(workspace)


def _is_of_entity(app: App, node: Node) -> bool:
    """Return whether a target processes slices: what it has to do follows from the manifest alone."""
    definition = app.project.targets.get(node.name)
    return definition is not None and definition.kind == "entity"
