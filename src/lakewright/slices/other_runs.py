"""Which runs of jobs take the slices that a target leaves to others, found by trying parameters.

A job's parameters are guessed from a slice's name: a date in it, a number, its beginning. A guess counts if
the declared `slices` and `until`, evaluated with it, take the slice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from typing import TYPE_CHECKING, Any

from lakewright.errors import SpecError
from lakewright.plan.other_runs import OtherRun
from lakewright.slices.context import SliceSelection
from lakewright.spec.expressions.values import ValueType, render_value
from lakewright.spec.models.entity import Strategy

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.job import Job, Parameter
    from lakewright.spec.project import Project

__all__ = [
    "declared_strategy",
    "declared_time",
    "entity_name",
    "entity_targets",
    "instance_taking",
    "is_limited",
    "processing_jobs",
    "run_taking",
    "strategy_of_jobs",
    "takes_slice",
]

MOST_TRIED = 200
"""Combinations of parameters that are tried for one slice and job."""

_DATE = re.compile(r"(?<!\d)(\d{4})[-_./]?(\d{2})[-_./]?(\d{2})(?!\d)")
_HOUR = re.compile(r"(?<!\d)(\d{4})[-_./]?(\d{2})[-_./]?(\d{2})[T_. -]?(\d{2})")
_NUMBER = re.compile(r"\d+")
_LIMITS = ("slices", "until")


@dataclass(frozen=True, slots=True)
class _Limited:
    """A job with a target that takes some slices of an entity."""

    job: Job
    declared: Mapping[str, Any]


def entity_name(project: Project, declared: Mapping[str, Any]) -> str | None:
    """Return what commands call the entity of a declared target; None if only an instance knows it."""
    try:
        return project.entity(str(declared.get("entity"))).called
    except SpecError:
        return None


def processing_jobs(project: Project, entity: str) -> Iterator[tuple[Job, Mapping[str, Any]]]:
    """Yield the jobs with a target that processes an entity, each with that target as declared."""
    for job in project.jobs.values():
        yield from ((job, declared) for _, declared in entity_targets(project, entity, job.targets))


def entity_targets(
    project: Project, entity: str, among: Iterable[str] | None = None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the names of targets that process an entity, each with the target as declared.

    Args:
        project: The project.
        entity: What commands call the entity.
        among: Names of the targets that are looked at; all of the project unless given.
    """
    for name in project.targets if among is None else among:
        definition = project.targets.get(name)
        is_of_entity = definition is not None and definition.kind == "entity"
        if definition is not None and is_of_entity and entity_name(project, definition.raw) == entity:
            yield name, definition.raw


def is_limited(declared: Mapping[str, Any]) -> bool:
    """Return whether a declared target leaves some slices to others."""
    return not declared.keys().isdisjoint(_LIMITS)


def takes_slice(
    project: Project, job: Job, declared: Mapping[str, Any], arguments: Mapping[str, object], name: str
) -> bool:
    """Return whether a declared target takes a slice in the instance of a job with these arguments."""
    scope = project.job_scope(job, arguments)
    try:
        given = {key: scope.render(str(declared[key])) for key in _LIMITS if key in declared}
    except SpecError:
        return False
    return SliceSelection(given.get("slices"), given.get("until")).takes(name)


def declared_time(declared: Mapping[str, Any]) -> str | None:
    """Return the processing time that a target declares, as it is written, or None."""
    text = declared.get("processingTime", declared.get("processing_time"))
    return None if text is None else str(text)


def declared_strategy(declared: Mapping[str, Any], entity: Entity) -> Strategy:
    """Return the strategy by which a declared target processes an entity; the entity's own by default."""
    text = str(declared.get("strategy", "")).strip().lower().replace("delta", Strategy.MERGE)
    return Strategy(text) if text in tuple(Strategy) else entity.strategy


def strategy_of_jobs(project: Project, entity: Entity) -> Strategy:
    """Return the strategy by which all jobs process an entity; its own if they disagree, or none does."""
    found = {declared_strategy(target, entity) for _, target in processing_jobs(project, entity.called)}
    return found.pop() if len(found) == 1 else entity.strategy


def run_taking(project: Project, entity: str, name: str) -> OtherRun | None:
    """Return the run of the first job that takes a slice; None if no job takes it.

    A job with a parameter whose value the user must choose comes after all others.
    """
    return _run_of(project, (_Limited(job, each) for job, each in processing_jobs(project, entity)), name)


def instance_taking(
    project: Project, job: Job, declared: Mapping[str, Any], name: str
) -> Mapping[str, str] | None:
    """Return the parameters that decide which instance of a job a slice belongs to; None if nothing tells.

    Where no target of the job limits its slices, a date or a number in the slice's name tells.

    Args:
        project: The project.
        job: The job.
        declared: The target of the entity in the job as declared; empty if the job has none.
        name: The slice.
    """
    if is_limited(declared):
        run = _run_of(project, [_Limited(job, declared)], name)
        found = None if run is None or run.unknown else dict(run.parameters)
    else:
        told = {each.name: next(_guesses(each, name), None) for each in job.parameters}
        is_told = all(told[each.name] and each.type is not ValueType.STRING for each in job.parameters)
        found = {key: text for key, text in told.items() if text} if is_told else None
    if not found:
        return None
    try:
        return {p.name: render_value(p.parse(found[p.name])) for p in job.parameters if p.name in found}
    except ValueError:
        return None


def _run_of(project: Project, limited: Iterable[_Limited], name: str) -> OtherRun | None:
    """Return the first run that takes a slice; one with parameters that the user must choose if no other."""
    incomplete = None
    for each in limited:
        found = _parameters(project, each, name)
        if found is not None:
            given = {parameter for parameter, _ in found}
            others = (p.name for p in each.job.parameters if p.name not in given and p.default is None)
            run = OtherRun(name, each.job.name, found, tuple(others))
            if not run.unknown:
                return run
            incomplete = incomplete or run
    return incomplete


def _parameters(project: Project, each: _Limited, name: str) -> tuple[tuple[str, str], ...] | None:
    """Return the values of parameters with which the slice is taken; None if none are found."""
    text = " ".join(str(each.declared[key]) for key in _LIMITS if key in each.declared)
    used = [p for p in each.job.parameters if re.search(rf"\b{re.escape(p.name)}\b", text)]
    guesses = (dict.fromkeys(_guesses(parameter, name)) for parameter in used)
    for texts in islice(product(*guesses), MOST_TRIED):
        try:
            values = {p.name: p.parse(value) for p, value in zip(used, texts, strict=True)}
        except ValueError:
            continue
        if takes_slice(project, each.job, each.declared, values, name):
            return tuple(zip((p.name for p in used), texts, strict=True))
    return None


def _guesses(parameter: Parameter, name: str) -> Iterator[str]:
    dates = ["-".join(found.groups()) for found in _DATE.finditer(name)]
    if parameter.type is ValueType.DATE:
        yield from dates
    elif parameter.type is ValueType.TIMESTAMP:
        yield from (f"{y}-{m}-{d}T{h}:00:00" for y, m, d, h in _HOUR.findall(name))
        yield from (f"{day}T00:00:00" for day in dates)
    elif parameter.type is ValueType.INTEGER:
        yield from _NUMBER.findall(name)
    elif parameter.type is ValueType.STRING:
        yield from dates
        yield from (found.group() for found in _DATE.finditer(name))
        yield name.partition(".")[0]
        yield from re.split(r"[._-]", name)
        yield from _NUMBER.findall(name)
        yield name
