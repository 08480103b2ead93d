"""The commands that a trigger runs, as a person would type them, and how they ended.

Source: the rules of the server, "Triggers": all that a server does goes through what the command line calls.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from lakewright.errors import Fault, ItemLocked, JvmEnded, LeaseHeld, SpecError, retryable_codes
from lakewright.spec.arguments import expand_arguments
from lakewright.spec.cron import find_zone
from lakewright.spec.models.trigger import Trigger, TriggerEvent
from lakewright.spec.project import Project
from lakewright.triggers.state import Attempt, Ending, Result

RETRYABLE = retryable_codes() | {ItemLocked.code, LeaseHeld.code, JvmEnded.code, "interrupted"}
"""Codes of errors that may pass by themselves: what another run holds, and what does not answer.

The JVM of a server may have been killed, or have run out of memory, because of another request.
"""

MOST_WARNINGS = 5
"""Warnings of a run that its trigger keeps; what is left is counted."""

LONGEST_WARNING = 500

_SIGNALLED = 128
"""Exit codes above this are those of commands that a signal has ended."""


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
                placed = replace(fault, location=fault.location or definition.at("parameters"))
                yield placed.about(definition.subject)


def ending_of(attempt: Attempt, code: int, printed: str, finished: datetime) -> Ending:
    """Return how an attempt ended.

    Args:
        attempt: The attempt.
        code: The command's exit code.
        printed: What it wrote to stdout: the document of `-o json`, or a part of it if it was killed.
        finished: When it ended.
    """
    document = _read(printed)
    errors = list(_errors(document))
    message = next((str(error.get("message", "")) for error in errors), "")
    if code == 0:
        result = Result.SUCCEEDED
    elif errors:
        is_passing = all(error.get("code") in RETRYABLE for error in errors)
        result = Result.RETRY if is_passing else Result.FAILED
    else:
        result = Result.RETRY if code > _SIGNALLED else Result.FAILED
    if result is not Result.SUCCEEDED and not message:
        message = f"{_ended(code)}; what it printed is in the log of the server"
    return Ending(
        due=attempt.due,
        started=attempt.started,
        finished=finished,
        result=result,
        message="" if result is Result.SUCCEEDED else message,
        run_id=document.get("run_id"),
        warnings=tuple(_first(list(dict.fromkeys(_warnings(document))))),
    )


def _ended(code: int) -> str:
    """Return what is known of a process that did not say why it ended."""
    if code <= _SIGNALLED:
        return f"its process ended with code {code}, and did not say why"
    number = code - _SIGNALLED
    named = {each.value: f" ({each.name})" for each in signal.Signals}.get(number, "")
    text = f"signal {number}{named} ended its process"
    if number != signal.SIGKILL:
        return text
    return f"{text}: somebody killed it, or the machine ran out of memory (see `dmesg`)"


def _read(printed: str) -> Mapping[str, Any]:
    try:
        found = json.loads(printed)
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _first(warnings: Sequence[str]) -> Iterator[str]:
    yield from (text[:LONGEST_WARNING] for text in warnings[:MOST_WARNINGS])
    if len(warnings) > MOST_WARNINGS:
        yield f"{len(warnings) - MOST_WARNINGS} more"


def _targets(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for instance in document.get("instances") or ():
        for phase in instance["phases"]:
            yield from phase["targets"]


def _warnings(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the warnings of the slices and targets of a document, with their names."""
    yield from _of_slices(document)
    for target in _targets(document):
        # Other kinds than entities have other metrics.
        found = (*map(str, target.get("warnings") or ()), *_of_slices(target.get("metrics") or {}))
        yield from (f"{target['name']}: {text}" for text in found)


def _of_slices(of: Mapping[str, Any]) -> Iterator[str]:
    slices = of.get("slices")
    for each in slices if isinstance(slices, list) else ():
        if isinstance(each, Mapping):
            yield from (f"{each.get('slice')}: {text}" for text in each.get("warnings") or ())


def _errors(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the errors of a document: of the command, of `process`, and of the targets of a job."""
    yield from document.get("errors") or ()
    if document.get("error"):
        yield document["error"]
    for target in _targets(document):
        if target["error"] and target["status"] not in ("SUCCESS", "SUCCESS_WITH_ERRORS", "SKIPPED"):
            yield target["error"]
