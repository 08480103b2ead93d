"""What targets require and provide as they are declared: nothing is observed, and Spark is not started."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from lakewright.app import App
from lakewright.errors import LakewrightError, NotInstalled
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
from lakewright.targets.target import Target
from lakewright.workspace.workspace import Workspace

__all__ = [
    "declared_nodes",
    "nodes_of_job",
    "offline_lake",
    "sample_scope",
    "sample_workspace",
]


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


def nodes_of_job(app: App, name: str, targets: Collection[str] | None = None) -> list[Node]:
    """Return what targets of a job require and provide in BUILD; none if its scope is wrong, told by itself.

    Args:
        app: The project.
        name: Name of the job.
        targets: Names of its targets; None for all.
    """
    job = app.project.job(name)
    try:
        workspace = sample_workspace(app.project, job, offline_lake(app))
        names = job.target_names(workspace.scope) if targets is None else sorted(targets)
    except LakewrightError:
        return []
    return list(declared_nodes(workspace, names, Phase.BUILD))


def offline_lake(app: App) -> Lake:
    """Return the lake as far as it is known without Spark."""
    refused = NotInstalled("a graph starts no Spark", remedy="Name a phase and parameters.")
    return Lake(app.project.lake, SessionSettings(app.project.basedir), sessions=NoSession(refused))
