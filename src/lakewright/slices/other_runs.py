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
from lakewright.slices.context import SliceSelection
from lakewright.spec.expressions.values import ValueType, render_value
from lakewright.spec.models.entity import Strategy
from lakewright.spec.models.slice_folder import dates_in

if TYPE_CHECKING:
    from lakewright.spec.expressions.scope import Scope
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.job import Job, Parameter
    from lakewright.spec.project import Project


MOST_TRIED = 200
"""Combinations of parameters that are tried for one slice and job."""

_HOUR = re.compile(r"(?<!\d)(\d{4})[-_./]?(\d{2})[-_./]?(\d{2})[T_. -]?(\d{2})")
_NUMBER = re.compile(r"\d+")
_LIMITS = ("slices", "until")


@dataclass(frozen=True, slots=True)
class OtherRun:
    """A run of a job that takes a slice.

    Attributes:
        job: Name of the job.
        target: Name of the target that takes it.
        parameters: Names and values of the parameters that decide which slices are taken.
        unknown: Names of further parameters without a default, whose values the user must choose.
    """

    job: str
    target: str
    parameters: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...] = ()


def processing_jobs(project: Project, entity: str) -> Iterator[tuple[Job, str, Mapping[str, Any]]]:
    """Yield the jobs with a target that processes an entity, each with that target's name and declaration."""
    for job in project.jobs.values():
        for name, declared in entity_targets(project, entity, job.targets):
            yield job, name, declared


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
        if project.processed_entities.get(name) == entity:
            yield name, project.targets[name].raw


def declared_time(declared: Mapping[str, Any]) -> str | None:
    """Return the processing time that a target declares, as it is written, or None."""
    text = declared.get("processingTime", declared.get("processing_time"))
    return None if text is None else str(text)


def strategy_of_jobs(project: Project, entity: Entity) -> Strategy:
    """Return the strategy by which all jobs process an entity; its own if they disagree, or none does."""
    found = {_strategy(target, entity) for _, _, target in processing_jobs(project, entity.called)}
    return found.pop() if len(found) == 1 else entity.strategy


def _strategy(declared: Mapping[str, Any], entity: Entity) -> Strategy:
    text = str(declared.get("strategy", "")).strip().lower().replace("delta", Strategy.MERGE)
    return Strategy(text) if text in tuple(Strategy) else entity.strategy


def run_taking(project: Project, entity: str, name: str) -> OtherRun | None:
    """Return the run of the first job that takes a slice; None if no job takes it.

    A job with a parameter whose value the user must choose comes after all others.
    """
    incomplete = None
    for job, target, declared in processing_jobs(project, entity):
        if (found := _parameters(project, job, declared, name)) is None:
            continue
        unknown = tuple(p.name for p in job.parameters if p.name not in found and p.default is None)
        run = OtherRun(job.name, target, tuple(found.items()), unknown)
        if not unknown:
            return run
        incomplete = incomplete or run
    return incomplete


def instance_taking(
    project: Project, job: Job, declared: Mapping[str, Any], name: str
) -> Mapping[str, str] | None:
    """Return the parameters that decide which instance of a job a slice belongs to; None if they are unknown.

    Where no target of the job limits its slices, a date or a number in the slice's name decides.

    Args:
        project: The project.
        job: The job.
        declared: The target of the entity in the job as declared; empty if the job has none.
        name: The slice.
    """
    if not declared.keys().isdisjoint(_LIMITS):
        found = _parameters(project, job, declared, name)
        if found is not None and any(p.name not in found and p.default is None for p in job.parameters):
            return None
    else:
        values = {each.name: next(_guesses(each, name), None) for each in job.parameters}
        is_complete = all(values[each.name] and each.type is not ValueType.STRING for each in job.parameters)
        found = {key: text for key, text in values.items() if text} if is_complete else None
    if not found:
        return None
    try:
        return {p.name: render_value(p.parse(found[p.name])) for p in job.parameters if p.name in found}
    except ValueError:
        return None


def _parameters(project: Project, job: Job, declared: Mapping[str, Any], name: str) -> dict[str, str] | None:
    """Return the parameters with which a declared target of a job takes a slice; None if none do."""
    text = " ".join(str(declared[key]) for key in _LIMITS if key in declared)
    used = [p for p in job.parameters if re.search(rf"\b{re.escape(p.name)}\b", text)]
    guesses = (dict.fromkeys(_guesses(parameter, name)) for parameter in used)
    for texts in islice(product(*guesses), MOST_TRIED):
        try:
            values = {p.name: p.parse(value) for p, value in zip(used, texts, strict=True)}
        except ValueError:
            continue
        if _takes(project.job_scope(job, values), declared, name):
            return dict(zip(values, texts, strict=True))
    return None


def _takes(scope: Scope, declared: Mapping[str, Any], name: str) -> bool:
    """Return whether a declared target takes a slice where names have these values."""
    try:
        given = {key: scope.render(str(declared[key])) for key in _LIMITS if key in declared}
    except SpecError:
        return False
    return SliceSelection(given.get("slices"), given.get("until")).takes(name)


def _guesses(parameter: Parameter, name: str) -> Iterator[str]:
    dates = [found[:10] for found in dates_in(name)]
    if parameter.type is ValueType.DATE:
        yield from dates
    elif parameter.type is ValueType.TIMESTAMP:
        yield from (f"{y}-{m}-{d}T{h}:00:00" for y, m, d, h in _HOUR.findall(name))
        yield from (f"{day}T00:00:00" for day in dates)
    elif parameter.type is ValueType.INTEGER:
        yield from _NUMBER.findall(name)
    elif parameter.type is ValueType.STRING:
        yield from dates
        yield from (day.replace("-", sign) for day in dates for sign in ("", "_", ".", "/"))
        yield name.partition(".")[0]
        yield from re.split(r"[._-]", name)
        yield from _NUMBER.findall(name)
        yield name
