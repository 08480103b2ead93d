"""The dependency graph of a job's targets: as a run would see it, or as it is declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakewright.app import App
from lakewright.errors import LakewrightError, NotInstalled
from lakewright.lake.lake import Lake
from lakewright.plan.arguments import expand_arguments, sample_arguments
from lakewright.plan.graph import Node, build_graph
from lakewright.plan.phase import Phase
from lakewright.run.planning import node_of
from lakewright.run.request import JobRequest
from lakewright.spark.conf import SessionSettings
from lakewright.spark.session import NoSession
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.models.job import Job
from lakewright.spec.project import Project
from lakewright.targets.target import Target
from lakewright.usecases import plan_job as planning
from lakewright.workspace.workspace import Workspace

__all__ = [
    "DrawnTarget",
    "declared_graph",
    "declared_nodes",
    "offline_lake",
    "phase_graph",
    "sample_scope",
    "sample_workspace",
]

_PHASES = (Phase.VALIDATE, Phase.CREATE, Phase.BUILD, Phase.VERIFY)


@dataclass(frozen=True, slots=True)
class DrawnTarget:
    """A target in a graph.

    Attributes:
        sources: The targets whose failure blocks it.
        node: What it requires and provides, if that was asked for.
    """

    name: str
    kind: str
    sources: frozenset[str]
    node: Node | None = None


def phase_graph(app: App, request: JobRequest, *, with_resources: bool) -> tuple[DrawnTarget, ...]:
    """Return the targets of one phase, in the order in which a run would take them.

    Raises:
        SpecError: The job, its arguments or a definition are wrong.
    """
    phases = [
        found for instance in planning.plan_job(app, request).instances[:1] for found in instance.phases
    ]
    nodes = planning.target_nodes(app, request) if with_resources else {}
    return tuple(
        DrawnTarget(
            step.target, step.kind, frozenset(phase.sources.get(step.target, ())), nodes.get(step.target)
        )
        for phase in phases[:1]
        for step in phase.steps
    )


def declared_graph(
    app: App, name: str, arguments: Sequence[str] = (), *, with_resources: bool
) -> tuple[DrawnTarget, ...]:
    """Return all targets of a job, with what connects them in any phase of its build.

    Parameters without a value get one of their type. What only Spark knows is left out.

    Raises:
        SpecError: The job, its arguments or a definition are wrong.
    """
    job = app.project.job(name)
    workspace = sample_workspace(app.project, job, offline_lake(app), arguments)
    names = job.target_names(workspace.scope)
    sources: dict[str, frozenset[str]] = dict.fromkeys(names, frozenset())
    found: dict[str, Node] = {}
    for phase in _PHASES:
        nodes = list(declared_nodes(workspace, names, phase))
        for target, others in build_graph(nodes, phase).sources.items():
            sources[target] |= others
        found |= {node.name: node for node in nodes if phase is Phase.BUILD or node.name not in found}
    order = build_graph([Node(each, after=tuple(sources[each])) for each in names], Phase.BUILD).order
    return tuple(
        DrawnTarget(
            each, workspace.target(each).kind, sources[each], found.get(each) if with_resources else None
        )
        for each in order
    )


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


def offline_lake(app: App) -> Lake:
    """Return the lake as far as it is known without Spark."""
    refused = NotInstalled("a graph starts no Spark", remedy="Name a phase and parameters.")
    return Lake(app.project.lake, SessionSettings(app.project.basedir), sessions=NoSession(refused))
