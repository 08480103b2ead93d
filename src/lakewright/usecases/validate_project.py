"""Validate a project: every error that can be found without Spark and without data.

Loading has checked each definition as it is written. Here, the definitions of each job are evaluated with
stand-ins for its parameters, their SQL is parsed, and the job's targets are checked for cycles that show
only in the resources they read and write.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" (dependency analysis).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakewright.app import App
from lakewright.errors import Fault, LakewrightError, SpecError
from lakewright.lake.cluster import check_cluster_settings
from lakewright.lake.lake import Lake
from lakewright.plan.graph import find_cycle
from lakewright.plan.phase import Phase
from lakewright.run.hooks.event import notification_faults
from lakewright.run.session_settings import state_folder
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.loading.case_setup import set_up_case
from lakewright.spec.models.job import Job
from lakewright.spec.project import Project
from lakewright.triggers.commands import argument_faults
from lakewright.usecases.declared_nodes import declared_nodes, offline_lake, sample_scope, sampled_jobs
from lakewright.usecases.run_job import select_tests
from lakewright.usecases.validation.definitions import evaluate_project
from lakewright.usecases.validation.named_columns import check_columns
from lakewright.usecases.validation.outputs import (
    analyse_with_spark,
    check_outputs,
    check_pasts,
    replaced_output_faults,
    value_faults,
)
from lakewright.usecases.validation.sql import Columns, check_sql, mapping_cycles
from lakewright.workspace.sql_check import SqlChecker
from lakewright.workspace.workspace import Workspace

_PHASES = (Phase.CREATE, Phase.BUILD, Phase.VERIFY, Phase.DESTROY)
"""TRUNCATE is left out: it has the same resources as DESTROY."""


@dataclass(frozen=True, slots=True)
class Validation:
    """What validation found, beside the warnings of loading.

    Attributes:
        errors: The faults of the project's files, and what a job or `process` would fail with.
        warnings: What may be meant as it is, or what only Spark can decide.
        analysed: The number of mappings that Spark analysed.
    """

    errors: tuple[Fault, ...]
    warnings: tuple[Fault, ...]
    analysed: int = 0


def validate_project(app: App, *, with_spark: bool = False) -> Validation:
    """Return what is wrong with a project.

    Args:
        app: The project, which may be loaded despite faults of its files.
        with_spark: Whether Spark analyses the queries of all mappings too, over tables without rows.
    """
    state = state_folder(app.project, app.environ)
    lake = offline_lake(app.project)
    found = evaluate_project(app.project, lake)
    checker = SqlChecker(state / "checked-sql.json")
    columns = Columns(checker)
    check_sql(found, columns)
    check_outputs(found)
    check_columns(found, columns)
    checker.save()
    for faults in (
        value_faults(found),
        mapping_cycles(found),
        find_cycles(app.project, lake),
        find_notification_faults(app.project),
        case_faults(app),
        argument_faults(app.project, app.clock()),
    ):
        found.report(faults, is_error=True)
    check_pasts(found, lake)
    found.report(cluster_faults(app), is_error=True)
    found.report(replaced_output_faults(app.project, lake), is_error=False)
    found.report(_idle_jobs(app.project), is_error=False)
    analysed = 0
    loaded = app.project.faults
    if with_spark and not loaded and not found.errors:
        analysis = analyse_with_spark(app.project, app.lake, found)
        analysed = analysis.accepted
        found.report(analysis.errors, is_error=True)
        found.report(analysis.warnings, is_error=False)
    return Validation((*loaded, *found.errors), tuple(found.warnings), analysed)


def case_faults(app: App) -> Iterator[Fault]:
    """Yield what is wrong with the project's tests that `lakewright test` would find without Spark."""
    found: dict[Fault, None] = {}
    for name in select_tests(app):
        try:
            set_up_case(app.project, name)
        except SpecError as error:
            # Tests that extend the same one have its faults, too.
            found |= dict.fromkeys(error.faults)
    yield from found


def _idle_jobs(project: Project) -> Iterator[Fault]:
    extended = {parent for job in project.jobs.values() for parent in job.extends}
    for name, job in project.jobs.items():
        if not job.targets and name not in extended:
            yield Fault(f"job {name!r} has no targets", remedy="Name them in `targets`, or remove the job.")


def cluster_faults(app: App) -> Iterator[Fault]:
    """Yield the fault for which a run would be refused on the project's cluster; nothing is reached."""
    try:
        check_cluster_settings(app.lake, has_entities=bool(app.project.entities))
    except LakewrightError as error:
        yield error.as_fault()


def find_notification_faults(project: Project) -> Iterator[Fault]:
    """Yield a fault for each expression in the jobs' hooks and metrics that can't be evaluated.

    A job that others extend is also for their targets: its metrics may be about what these measure.
    """
    scopes: dict[str, Scope] = {}
    measured: set[str] = set()
    for name, job in project.jobs.items():
        try:
            scopes[name] = sample_scope(project, job)
            targets = [project.targets.get(each) for each in job.target_names(scopes[name])]
        except LakewrightError:
            continue
        if any(target is not None and target.kind == "measure" for target in targets):
            measured |= {name, *_extended(project, job)}
    for name, scope in scopes.items():
        yield from notification_faults(project.jobs[name], scope, has_measures=name in measured)


def _extended(project: Project, job: Job) -> Iterator[str]:
    """Yield the jobs that a job extends, also through others."""
    for name in job.extends:
        yield name
        if name in project.jobs:
            yield from _extended(project, project.jobs[name])


def find_cycles(project: Project, lake: Lake) -> Iterator[Fault]:
    """Yield a fault for each job whose targets form a cycle of reads and writes.

    Parameters without a default get a sample value of their type. Cycles that cannot be found with it,
    or without Spark, are reported by the plan.
    """
    for job, workspace, names in sampled_jobs(project, lake):
        yield from _cycle(workspace, job, names)


def _cycle(workspace: Workspace, job: Job, names: Sequence[str]) -> Iterator[Fault]:
    for phase in _PHASES:
        nodes = list(declared_nodes(workspace, names, phase))
        if cycle := find_cycle(nodes):
            chain = " -> ".join(cycle)
            yield Fault(
                f"job {job.name!r}: in {phase}, targets read what they write in a cycle: {chain}",
                workspace.project.targets[cycle[0]].at(),
                "Have one of them read or write another place.",
            )
            return
