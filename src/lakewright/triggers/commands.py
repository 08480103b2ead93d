"""The commands that a trigger runs, as a person would type them.

Source: the rules of the server, "Triggers": all that a server does goes through what the command line calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from lakewright.errors import Fault, SpecError
from lakewright.spec.arguments import expand_arguments
from lakewright.spec.cron import find_zone
from lakewright.spec.definitions.definition import ABOUT, fault_about
from lakewright.spec.models.trigger import Trigger, TriggerEvent
from lakewright.spec.project import Project


def job_arguments(project: Project, trigger: Trigger, at: datetime) -> tuple[str, ...]:
    """Return the arguments of a trigger's job, with expressions evaluated as of the time that is due.

    Raises:
        SpecError: An expression is invalid.
    """
    scope = project.scope.at(at, find_zone(trigger.timezone))
    return tuple(f"{name}={scope.render(text)}" for name, text in trigger.parameters.items())


def command(
    project: Project, trigger: Trigger, at: datetime, entity: str = "", *, is_retry: bool = False
) -> tuple[str, ...]:
    """Return the arguments of the command that a trigger runs: `job` or, for one of its entities, `process`.

    Args:
        project: The project.
        trigger: The trigger.
        at: The time that is due.
        entity: The entity; empty for a job.
        is_retry: Whether it runs once more for the same due time, as the attempt before it failed.

    Raises:
        SpecError: An expression is invalid.
    """
    settle = f"lakewright.bronze.settle={trigger.settle.total_seconds():g}s"
    # A fault in another definition, made a moment ago, does not stop this run.
    options = ("--despite-faults", *(("--conf", settle) if trigger.on is TriggerEvent.ARRIVAL else ()))
    if trigger.job is None:
        return ("process", entity, *options)
    phase = "" if trigger.phase is None else trigger.phase.lower()
    retry = ("--retry",) if is_retry else ()
    return ("job", trigger.job, phase, *job_arguments(project, trigger, at), *retry, *options)


def argument_faults(project: Project, at: datetime) -> Iterator[Fault]:
    """Yield the faults of all triggers' parameters: unknown, missing, or not of the parameter's type."""
    for name, definition in project.triggers.items():
        try:
            trigger = project.trigger(name)
            job = project.job(trigger.job) if trigger.job else None
            if job is not None:
                given = job_arguments(project, trigger, at)
                expand_arguments(job.parameters, given, project.job_scope(job))
        except SpecError as error:
            for fault in error.faults:
                subject, _ = fault.details.get(ABOUT, (None, None))
                placed = replace(fault, location=fault.location or definition.at("parameters"))
                is_own = subject == definition.subject
                yield placed if is_own else fault_about(definition.subject, placed)
