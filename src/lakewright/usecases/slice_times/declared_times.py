"""The processing times that targets of jobs declare for an entity's slices, and the slices that are late.

Slices that are processed without a job, by hand or by a trigger, get the times that all jobs declare. Late
slices, and what to type about them, are known from the manifest: nothing has to fail first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from lakewright.errors import LakewrightError
from lakewright.lake.paths import local_path
from lakewright.slices.context import SliceSelection
from lakewright.slices.discover import item_id, list_slices
from lakewright.slices.late_advice import LateSlices, find_late_slices
from lakewright.slices.other_runs import (
    declared_time,
    entity_targets,
    find_other_runs,
    processing_jobs,
    strategy_of_jobs,
)
from lakewright.slices.processed import is_late
from lakewright.slices.processing_time import ProcessingTimes
from lakewright.slices.recover_from_log import as_if_recovered
from lakewright.slices.time_check import Placement, may_be_late
from lakewright.spec.expressions.expression import names_in, parse_template
from lakewright.spec.models.entity import Strategy
from lakewright.targets.target import Target
from lakewright.usecases.placed import chain_of
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from datetime import datetime

    from lakewright.app import App
    from lakewright.manifest.item import Item
    from lakewright.spec.expressions.scope import Scope
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.job import Job, Parameter
    from lakewright.targets.entity.target import EntityTarget

__all__ = [
    "AskedTarget",
    "ProcessTimes",
    "TimedTarget",
    "declared_slice_time",
    "known_targets",
    "late_items",
    "late_slices_of",
    "placement_of",
    "process_times",
    "timed_targets",
]

AskedTarget: TypeAlias = "tuple[Job, str, Mapping[str, str]]"
"""A job, the name of one of its targets, and the parameters of an instance, as text."""


@dataclass(frozen=True, slots=True)
class TimedTarget:
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

    @property
    def selection(self) -> SliceSelection:
        """The slices that the target takes."""
        return SliceSelection(self.target.slices, self.target.until)

    def taken(self, names: Iterable[str]) -> list[str]:
        """Return those of some slices that the target takes."""
        return list(filter(self.selection.takes, names))


def _timed_names(app: App, entity: str) -> set[str]:
    found = entity_targets(app.project, entity)
    return {name for name, declared in found if declared_time(declared) is not None}


def timed_targets(app: App, entity: str, slices: Sequence[str]) -> Iterator[AskedTarget]:
    """Yield the targets of jobs that take an entity's slices and declare a time, as one takes the first."""
    names = _timed_names(app, entity) if slices else ()
    if not names:
        return
    runs = {run.job: dict(run.parameters) for run in find_other_runs(app.project, entity, slices[:1])}
    for job in app.project.jobs.values():
        yield from ((job, name, runs.get(job.name, {})) for name in job.targets if name in names)


def known_targets(app: App, asked: Iterable[AskedTarget]) -> Iterator[TimedTarget]:
    """Yield targets of entities with the processing times that they declare.

    Those whose parameters are unknown, or have changed, are left out.
    """
    for each in asked:
        with suppress(LakewrightError, ValueError):
            if (found := _timed_target(app, *each)) is not None:
                yield found


def _timed_target(app: App, job: Job, name: str, parameters: Mapping[str, str]) -> TimedTarget | None:
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
    return TimedTarget(target, entity, times, unknown)


def declared_slice_time(app: App, entity: str, slice_name: str) -> datetime | None:
    """Return the processing time that the first job's target declares for a slice; None if none does."""
    for found in known_targets(app, timed_targets(app, entity, (slice_name,))):
        with suppress(LakewrightError, ValueError):  # its parameters are unknown: another job may tell
            if (at := found.times.at(slice_name)) is not None:
                return at
    return None


def placement_of(app: App, entity: Entity) -> Placement:
    """Return the processed slices of an entity, by which the place of another one is judged."""
    return Placement(chain_of(app, entity), entity.strategy is Strategy.HISTORIC)


def late_items(app: App, entity: Entity, items: Iterable[Item]) -> tuple[Item, ...]:
    """Return those of an entity's ready items that the next run refuses as late.

    Raises:
        StorageUnavailable: The bronze folder can't be read.
    """
    asked = tuple(item for item in items if not may_be_late(entity, item))
    if not asked:
        return ()
    chain, present = chain_of(app, entity), None
    if local_path(chain.bronze) is not None:
        known = app.store.read([item_id(each.path) for each in list_slices(chain.bronze, app.lake)])
        present = {**known, **as_if_recovered(chain, known.values())}
    last = chain.last_processed(present)
    return tuple(item for item in asked if is_late(item, last))


def late_slices_of(app: App, entity: Entity, names: tuple[str, ...]) -> LateSlices:
    """Return late slices of an entity with what to type about them."""
    by = strategy_of_jobs(app.project, entity)
    declared = partial(declared_slice_time, app, entity.called)
    return find_late_slices(entity, names, placement_of(app, entity), declared, by)


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
