"""The processing times that targets of jobs declare for an entity's slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from lakewright.errors import LakewrightError
from lakewright.slices.application import application_of
from lakewright.slices.other_runs import declared_time, entity_name, find_other_runs
from lakewright.slices.processed import Placement
from lakewright.slices.processing_time import ProcessingTimes
from lakewright.spec.models.entity import Strategy
from lakewright.targets.target import Target
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from datetime import datetime

    from lakewright.app import App
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.job import Job
    from lakewright.targets.entity.target import EntityTarget

__all__ = [
    "AskedTarget",
    "TimedTarget",
    "declared_slice_time",
    "declares_time",
    "placement_of",
    "timed_target",
    "timed_targets",
]

AskedTarget: TypeAlias = "tuple[Job, str, Mapping[str, str]]"
"""A job, the name of one of its targets, and the parameters of an instance, as text."""


@dataclass(frozen=True, slots=True)
class TimedTarget:
    """A target of kind entity as an instance of a job has it.

    Attributes:
        times: The processing times that it declares.
    """

    target: EntityTarget
    entity: Entity
    times: ProcessingTimes


def declares_time(app: App, target: str) -> bool:
    """Return whether a target is one of an entity, and declares a processing time."""
    definition = app.project.targets.get(target)
    return (
        definition is not None and definition.kind == "entity" and declared_time(definition.raw) is not None
    )


def timed_targets(app: App, entity: str, slice_name: str) -> Iterator[AskedTarget]:
    """Yield the targets of jobs that take an entity's slices and declare a time, as one takes a slice."""
    timed = [name for name in app.project.targets if declares_time(app, name)]
    names = {name for name in timed if entity_name(app.project, app.project.targets[name].raw) == entity}
    if not names:
        return
    runs = {run.job: dict(run.parameters) for run in find_other_runs(app.project, entity, (slice_name,))}
    for job in app.project.jobs.values():
        yield from ((job, name, runs.get(job.name, {})) for name in job.targets if name in names)


def timed_target(app: App, asked: AskedTarget) -> TimedTarget | None:
    """Return a target with the processing times that it declares; None if it is not one of an entity.

    Raises:
        LakewrightError, ValueError: Parameters are unknown, or have changed.
    """
    from lakewright.targets.entity.target import EntityTarget  # not needed where no target declares a time

    job, name, parameters = asked
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
    return TimedTarget(target, entity, times)


def placement_of(app: App, entity: Entity) -> Placement:
    """Return the processed slices of an entity, by which the place of another one is judged."""
    bronze = entity.places(app.project.lake).bronze
    is_historic = entity.strategy is Strategy.HISTORIC
    return Placement(app.store, application_of(app.project.name, entity), bronze, is_historic)


def declared_slice_time(app: App, entity: str, slice_name: str) -> datetime | None:
    """Return the processing time that the first job's target declares for a slice; None if none does."""
    for asked in timed_targets(app, entity, slice_name):
        try:
            found = timed_target(app, asked)
            at = None if found is None else found.times.at(slice_name)
        except (LakewrightError, ValueError):  # its parameters are unknown: another job may tell
            continue
        if at is not None:
            return at
    return None
