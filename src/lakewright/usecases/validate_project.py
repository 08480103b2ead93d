"""Validate a project: every error that can be found without Spark and without data.

Loading has checked each definition. Here the targets of each job are checked for cycles that show only
in the resources they read and write.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" (dependency analysis).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakewright.app import App
from lakewright.errors import Fault, LakewrightError, NotInstalled, SpecError
from lakewright.lake.lake import Lake
from lakewright.plan.arguments import expand_arguments, sample_arguments
from lakewright.plan.graph import Node, find_cycle
from lakewright.plan.phase import Phase
from lakewright.run.hooks.check import notification_faults
from lakewright.run.planning import node_of
from lakewright.spark.conf import SessionSettings
from lakewright.spark.session import NoSession
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.models.job import Job
from lakewright.spec.project import Project
from lakewright.targets.target import Target
from lakewright.workspace.workspace import Workspace

__all__ = ["find_cycles", "find_notification_faults", "validate_project"]

_PHASES = (Phase.CREATE, Phase.BUILD, Phase.VERIFY, Phase.DESTROY)
"""TRUNCATE is left out: it has the same resources as DESTROY."""


def validate_project(app: App) -> None:
    """Check what loading the project could not check.

    Raises:
        SpecError: The targets of a job form a cycle of reads and writes, or an expression in its hooks or
            its metrics can't be evaluated.
    """
    faults = (*find_cycles(app.project, app.lake.session), *find_notification_faults(app.project))
    if faults:
        raise SpecError(faults)


def find_notification_faults(project: Project) -> Iterator[Fault]:
    """Yield a fault for each expression in the jobs' hooks and metrics that can't be evaluated."""
    for job in project.jobs.values():
        try:
            scope = _scope(project, job)
            targets = [project.targets.get(name) for name in job.target_names(scope)]
        except LakewrightError:
            continue
        has_measures = any(target is not None and target.kind == "measure" for target in targets)
        yield from notification_faults(job, scope, has_measures=has_measures)


def find_cycles(project: Project, session: SessionSettings) -> Iterator[Fault]:
    """Yield a fault for each job whose targets form a cycle of reads and writes.

    Parameters without a default get a sample value of their type. Cycles that cannot be found with it,
    or without Spark, are reported by the plan.
    """
    refused = NotInstalled("validating a project starts no Spark")
    lake = Lake(project.lake, session, sessions=NoSession(refused))
    for job in project.jobs.values():
        try:
            workspace = _workspace(project, job, lake)
            names = job.target_names(workspace.scope)
        except LakewrightError:
            continue
        yield from _cycle(workspace, job, names)


def _workspace(project: Project, job: Job, lake: Lake) -> Workspace:
    scope = _scope(project, job)
    return Workspace(project.within(scope), scope, lake)


def _scope(project: Project, job: Job) -> Scope:
    """Return the names of an instance with sample values of the parameters without a default."""
    instance = expand_arguments(job.parameters, sample_arguments(job.parameters), project.job_scope(job))[0]
    return project.job_scope(job, instance)


def _cycle(workspace: Workspace, job: Job, names: Sequence[str]) -> Iterator[Fault]:
    for phase in _PHASES:
        nodes = list(_nodes(workspace, names, phase))
        if cycle := find_cycle(nodes):
            chain = " -> ".join(cycle)
            yield Fault(
                f"job {job.name!r}: in {phase}, targets read what they write in a cycle: {chain}",
                workspace.project.targets[cycle[0]].at(),
                "Have one of them read or write another place.",
            )
            return


def _nodes(workspace: Workspace, names: Sequence[str], phase: Phase) -> Iterator[Node]:
    for name in names:
        try:
            target = Target.named(workspace, name)
            if target.enabled and phase in target.phases_in(workspace):
                yield node_of(target, workspace, phase)
        except LakewrightError:
            continue
