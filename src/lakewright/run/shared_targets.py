"""Name the other jobs whose targets a TRUNCATE or DESTROY would empty or remove.

This is not refused: jobs of one project often list the same targets, for example one job for a single day
and one for a range.

Source: `lifecycles-and-phases.md`, "Phases" (TRUNCATE, DESTROY); naming other jobs is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from lakewright.errors import SpecError
from lakewright.plan.status import Planned
from lakewright.plan.step import InstancePlan, PhasePlan, Plan, Step
from lakewright.spec.models.job import Job
from lakewright.spec.project import Project

__all__ = ["name_other_jobs"]

_WRITTEN = ("relation", "entity")


def name_other_jobs(plan: Plan, project: Project) -> Plan:
    """Return the plan with reasons that name the other jobs which share the target of a cleanup step.

    Cleanup steps are those of TRUNCATE and DESTROY. Jobs share a target if they list the same one, or one
    with the same relation or entity.
    """
    if not plan.phase.is_cleanup:
        return plan
    users = _users(project, without=plan.job)
    return replace(plan, instances=tuple(_instance(instance, users, project) for instance in plan.instances))


def _users(project: Project, *, without: str) -> Mapping[tuple[str, str], list[str]]:
    """Return the names of the other jobs by target, relation and entity."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, job in project.jobs.items():
        for target in _targets(project, job) if name != without else ():
            for thing in _shared_things(project, target):
                found.setdefault(thing, []).append(name)
    return found


def _targets(project: Project, job: Job) -> tuple[str, ...]:
    try:
        return job.target_names(project.job_scope(job))
    except SpecError:
        return ()  # a job whose targets cannot be evaluated now


def _shared_things(project: Project, target: str) -> Iterator[tuple[str, str]]:
    yield ("target", target)
    definition = project.targets.get(target)
    for category in _WRITTEN:
        named = None if definition is None else definition.raw.get(category)
        if isinstance(named, str):
            yield (category, named)


def _instance(
    instance: InstancePlan, users: Mapping[tuple[str, str], list[str]], project: Project
) -> InstancePlan:
    def named(step: Step) -> Step:
        others = {job for thing in _shared_things(project, step.target) for job in users.get(thing, ())}
        if step.status is not Planned.WOULD_RUN or not others:
            return step
        jobs = "job" if len(others) == 1 else "jobs"
        return replace(step, reasons=(*step.reasons, f"also of {jobs} {', '.join(sorted(others))}"))

    def phase(planned: PhasePlan) -> PhasePlan:
        return replace(planned, steps=tuple(map(named, planned.steps)))

    return replace(instance, phases=tuple(map(phase, instance.phases)))
