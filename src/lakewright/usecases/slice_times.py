"""The processing times that targets of jobs declare for an entity's slices.

Slices that are processed without a job, by hand or by a trigger, get the times that all jobs declare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError, UsageError
from lakewright.slices.context import SliceSelection
from lakewright.slices.other_runs import (
    declared_time,
    entity_targets,
    processing_jobs,
    run_taking,
)
from lakewright.slices.processing_time import ProcessingTimes, depends_on_slice
from lakewright.spec.expressions.expression import names_in, parse_template
from lakewright.spec.models.entity import Strategy
from lakewright.targets.target import Target
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from datetime import datetime

    from lakewright.app import App
    from lakewright.spec.expressions.scope import Scope
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.job import Job, Parameter
    from lakewright.targets.entity.target import EntityTarget

__all__ = [
    "ProcessTimes",
    "blocking_time",
    "declared_slice_time",
    "process_times",
]


@dataclass(frozen=True, slots=True)
class _TimedTarget:
    """A target of kind entity as an instance of a job has it.

    Attributes:
        times: The processing times that it declares.
        unknown: The parameters of the job that the instance does not give.
    """

    target: EntityTarget
    entity: Entity
    times: ProcessingTimes
    unknown: tuple[Parameter, ...]

    @property
    def is_historic(self) -> bool:
        """Whether the times are those of versions."""
        return (self.target.strategy or self.entity.strategy) is Strategy.HISTORIC

    def taken(self, names: Iterable[str]) -> list[str]:
        """Return those of some slices that the target takes."""
        return list(filter(SliceSelection(self.target.slices, self.target.until).takes, names))


def _timed_targets(app: App, entity: str, slices: Sequence[str]) -> Iterator[_TimedTarget]:
    """Yield the targets of jobs that take an entity's slices and declare a time, as one takes the first.

    Those whose parameters are unknown, or have changed, are left out.
    """
    targets = entity_targets(app.project, entity) if slices else ()
    names = {name for name, declared in targets if declared_time(declared) is not None}
    run = run_taking(app.project, entity, slices[0]) if names else None
    for job in app.project.jobs.values() if names else ():
        parameters = dict(run.parameters) if run is not None and run.job == job.name else {}
        for name in filter(names.__contains__, job.targets):
            with suppress(LakewrightError, ValueError):
                if (found := _timed_target(app, job, name, parameters)) is not None:
                    yield found


def _timed_target(app: App, job: Job, name: str, parameters: Mapping[str, str]) -> _TimedTarget | None:
    from lakewright.targets.entity.target import EntityTarget  # not needed where no target declares a time

    given = (each for each in job.parameters if each.name in parameters)
    scope = app.project.job_scope(job, {each.name: each.parse(parameters[each.name]) for each in given})
    workspace = Workspace(app.project.within(scope), scope, app.lake)
    target = Target.named(workspace, name)
    if not isinstance(target, EntityTarget):
        return None
    entity, zone = workspace.entity(target.entity), app.lake.settings.zone
    times = ProcessingTimes(
        target.processing_time, zone, scope, is_lenient=False, warn=lambda _: None, entity=entity.called
    )
    unknown = tuple(each for each in job.parameters if each.name not in parameters)
    return _TimedTarget(target, entity, times, unknown)


def declared_slice_time(app: App, entity: str, slice_name: str) -> datetime | None:
    """Return the processing time that the first job's target declares for a slice; None if none does."""
    for found in _timed_targets(app, entity, (slice_name,)):
        with suppress(LakewrightError, ValueError):  # its parameters are unknown: another job may tell
            if (at := found.times.at(slice_name)) is not None:
                return at
    return None


def blocking_time(app: App, entity: Entity, names: Sequence[str]) -> UsageError | None:
    """Return the error by which a job would process none of these slices, as their times are wrong, or None.

    A time is wrong if the expression has no value for a slice, or one that is not later than that of the
    slice before it in a table of versions. It is known from the declaration and the slices' names.

    Args:
        app: The project.
        entity: The entity.
        names: The slices that the next run would process, in order, without those that it refuses as late.
    """
    for found in _timed_targets(app, entity.called, names):
        if not _is_told_by_slices(found):
            continue
        try:
            found.times.check_order(found.taken(names), found.entity.called, is_historic=found.is_historic)
        except UsageError as error:
            return error
    return None


def _is_told_by_slices(found: _TimedTarget) -> bool:
    """Return whether the names of slices tell their times, and no parameter that is not known.

    Several slices may tell the parameters of one run, whose one time they all get.
    """
    text = found.times.text
    if text is None:
        return False
    try:
        is_of_slice, used = depends_on_slice(text), names_in(parse_template(text))
    except LakewrightError:  # `validate` tells it
        return False
    return not any(each.name in used and (each.default is None or not is_of_slice) for each in found.unknown)


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """The processing times that slices get.

    Attributes:
        text: ISO 8601, or an expression over the slice; None for the time of now.
        scope: Names that the expression may use.
        note: Which times these are, if the caller gave none and a job declares some.
        is_now: Whether a job declares times that these are not.
    """

    text: str | None
    scope: Scope
    note: str | None = None
    is_now: bool = False


def process_times(app: App, entity: Entity, given: str | None) -> ProcessTimes:
    """Return the times that are given, or those that all jobs declare for an entity's slices.

    A time that depends on a job's parameters, or that not all jobs declare, is not used: then it is that of
    now, and the note says so.
    """
    scope = app.workspace.scope
    declared = [(job, declared_time(each)) for job, each in processing_jobs(app.project, entity.called)]
    texts = list(dict.fromkeys(text for _, text in declared if text is not None))
    if given is not None or not texts:
        return ProcessTimes(given, scope)
    jobs = [job for job, text in declared if text is not None]
    named = f"the job {jobs[0].name} declares {texts[0]!r}"
    if len(texts) > 1 or len(jobs) < len(declared):
        why = f"{named}, and not all jobs that process {entity.called} declare the same"
    elif any(_needs_parameters(job, texts[0]) for job in jobs):
        why = f"{named}, which depends on its parameters"
    else:
        note = f"the processing times are those that the job {jobs[0].name} declares: {texts[0]}"
        return ProcessTimes(texts[0], app.project.job_scope(jobs[0]), note)
    return ProcessTimes(None, scope, f"the processing time is that of now: {why}", is_now=True)


def _needs_parameters(job: Job, text: str) -> bool:
    try:
        used = names_in(parse_template(text)) if "$" in text else frozenset()
    except LakewrightError:  # `validate` tells it
        return True
    return any(each.name in used for each in job.parameters)
