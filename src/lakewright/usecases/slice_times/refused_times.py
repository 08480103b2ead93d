"""Whether the next run would refuse the processing times of slices that are ready, as a failed one did.

Such a run fails before it locks a slice, so that the manifest has nothing to resolve, and to resume it does
not help. The slices are looked for as they are now: somebody may have processed them, or later ones, since.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from lakewright.errors import BackdatedError, LakewrightError
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.store import Query
from lakewright.plan.status import Status
from lakewright.slices.application import application_of, applications_before
from lakewright.slices.context import ALL_SLICES, SliceSelection
from lakewright.slices.discover import item_id, natural_key, slice_name
from lakewright.slices.other_runs import entity_name
from lakewright.slices.pending import sort_pending
from lakewright.slices.processed import is_late, last_processed
from lakewright.slices.recover_from_log import has_landed
from lakewright.slices.time_check import early_error, early_note, may_be_late, unknown_time_note
from lakewright.spec.models.entity import Strategy
from lakewright.usecases.damage.unrecorded_slices import as_after_recovery
from lakewright.usecases.slice_times.target_times import (
    AskedTarget,
    declares_time,
    placement_of,
    timed_target,
    timed_targets,
)

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.journal import Run
    from lakewright.run.build_history import Instance
    from lakewright.spec.models.entity import Entity
    from lakewright.usecases.slice_times.target_times import TimedTarget

__all__ = [
    "commands_for_times",
    "gives_place",
    "ready_timed",
    "refused_arrived",
    "refused_ready",
    "refused_time",
    "refused_waiting",
    "requeued_time_note",
]

_UNDONE = (Status.FAILED.value, Status.ABORTED.value, Status.BLOCKED.value)
_OPEN = frozenset((Verdict.READY, Verdict.LOCKED, Verdict.FAILED, Verdict.INVALID))


def refused_time(app: App, run: Run, left: Collection[Instance]) -> BackdatedError | None:
    """Return the error with which a failed run would fail if it were resumed now, or None.

    Args:
        app: The project.
        run: The run.
        left: What it has left to build; one that was killed did not record what it has not reached.
    """
    job = app.project.jobs.get(run.job)
    if job is None or not any(declares_time(app, name) for name in job.targets):
        return None
    return _first_refused(app, ((job, *each) for each in _undone(app, run, left)))


def refused_waiting(app: App, entity: str, first: str) -> BackdatedError | None:
    """Return the error with which a job would fail that takes an entity's slices, or None.

    Args:
        app: The project.
        entity: The entity.
        first: Name of the first slice that waits: jobs whose parameters choose slices are asked for it.
    """
    return _first_refused(app, timed_targets(app, entity, first))


def refused_ready(app: App, ready: Container[str]) -> Iterator[tuple[str, BackdatedError]]:
    """Yield the entities with ready slices whose times a job would refuse, with its error.

    Args:
        app: The project.
        ready: Names of the entities that have ready slices: only these are read, if a job declares a time.
    """
    for entity, names in ready_timed(app, ready):
        if names and (error := refused_waiting(app, entity.called, names[0])) is not None:
            yield entity.called, error


def ready_timed(app: App, ready: Container[str]) -> Iterator[tuple[Entity, list[str]]]:
    """Yield the entities whose times a job declares, with their ready slices that are not late, in order.

    Args:
        app: The project.
        ready: Names of the entities that have ready slices: only these are read.
    """
    for name, entity in app.project.entities.items():
        if name not in ready or not entity.enabled or not is_timed(app, entity):
            continue
        with suppress(LakewrightError):  # what can't be read is told by itself
            timely = _not_refused_as_late(app, entity, _ready(app, entity, ALL_SLICES))
            yield entity, sorted(map(slice_name, timely), key=natural_key)


def is_timed(app: App, entity: Entity) -> bool:
    """Return whether a target declares a processing time for an entity."""
    targets = app.project.targets
    timed = (name for name in targets if declares_time(app, name))
    return any(entity_name(app.project, targets[name].raw) == entity.called for name in timed)


def refused_arrived(app: App, entity: str, names: Sequence[str]) -> BackdatedError | None:
    """Return the error with which a job would fail that takes slices which no run has seen yet, or None.

    Args:
        app: The project.
        entity: The entity.
        names: The slices, in order.
    """
    for found, taken in _declared_times(app, entity, names):
        with suppress(LakewrightError, ValueError):  # it is only a forecast
            placement = placement_of(app, found.entity)
            error = early_error(app.lake, found.entity, taken, found.times, placement=placement)
            if error is not None:
                return error
    return None


def requeued_time_note(app: App, entity: Entity, names: Sequence[str]) -> str | None:
    """Return that the next run refuses the processing times of slices, with the commands to type.

    A requeued slice of a table of versions is processed again with the time that its target declares. If that
    is the slice's own date, the table has later versions. A time may need a parameter that no slice tells:
    then that is said, with the time that must be exceeded. None if the run takes the slices.

    Args:
        app: The project.
        entity: Their entity.
        names: The slices, in the order of processing.
    """
    note = early_note(refused_arrived(app, entity.called, names))
    if note is not None:
        return note
    for found, taken in _declared_times(app, entity.called, names):
        try:
            found.times.at(taken[0])
        except LakewrightError:
            with suppress(LakewrightError):
                note = note or unknown_time_note(app.lake, entity, str(found.times.text))
    return note


def _declared_times(app: App, entity: str, names: Sequence[str]) -> Iterator[tuple[TimedTarget, list[str]]]:
    """Yield the targets that declare times for versions of an entity, each with the slices that it takes."""
    for asked in timed_targets(app, entity, names[0]) if names else ():
        with suppress(LakewrightError, ValueError):  # parameters are unknown or have changed
            found = timed_target(app, asked)
            if found is None or not _is_historic(found):
                continue
            takes = SliceSelection(found.target.slices, found.target.until).takes
            if taken := list(filter(takes, names)):
                yield found, taken


def gives_place(error: BackdatedError) -> bool:
    """Return whether a rebuild puts the refused slices in their place."""
    return error.details["rebuild"] is not None


def commands_for_times(error: BackdatedError) -> tuple[tuple[str, ...], bool]:
    """Return the commands to type about refused slices, and whether these are for all of the slices.

    A rebuild puts all in their place. Later times, by which their rows become the current ones, are only told
    where none does.
    """
    details = error.details
    if gives_place(error):
        return (str(details["rebuild"]),), True
    typed = tuple(map(str, details["commands"]))
    return typed, len(typed) == details["slices"]


def _is_historic(found: TimedTarget) -> bool:
    return (found.target.strategy or found.entity.strategy) is Strategy.HISTORIC


def _first_refused(app: App, targets: Iterable[AskedTarget]) -> BackdatedError | None:
    for asked in targets:
        try:
            error = _refused(app, asked)
        except (LakewrightError, ValueError):  # it is only a forecast; parameters are unknown or have changed
            continue
        if error is not None:
            return error
    return None


def _undone(app: App, run: Run, left: Collection[Instance]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the targets with a declared time that a run left undone, with the parameters of the instances."""
    seen: list[tuple[str, Mapping[str, str]]] = []
    for entry in app.journal.targets(run.run_id):
        found = (entry["name"], entry.get("instance", {}))
        if entry["status"] in _UNDONE and found not in seen and declares_time(app, found[0]):
            seen.append(found)
            yield found
    for name, instance in sorted(left):
        if (name, dict(instance)) not in seen and declares_time(app, name):
            yield name, dict(instance)


def _refused(app: App, asked: AskedTarget) -> BackdatedError | None:
    found = timed_target(app, asked)
    if found is None:
        return None
    target, entity, times = found.target, found.entity, found.times
    if not _is_historic(found):
        return None
    ready = _ready(app, entity, SliceSelection(target.slices, target.until))
    if not ready or early_error(app.lake, entity, list(map(slice_name, ready)), times) is None:
        return None
    # Which slices are late takes a look at those that are processed, so only where it matters.
    timed = _not_refused_as_late(app, entity, ready)
    silver, application = entity.places(app.lake.settings).silver, application_of(app.project.name, entity)
    if not timed or has_landed(app.lake, silver, timed[0], application):
        return None
    names, placement = list(map(slice_name, timed)), placement_of(app, entity)
    return early_error(app.lake, entity, names, times, placement=placement)


def _ready(app: App, entity: Entity, selection: SliceSelection) -> tuple[Item, ...]:
    prefix = item_id(entity.places(app.lake.settings).bronze) + "/"
    items = {item.item_id: item for item in app.store.select(Query(verdicts=_OPEN, prefix=prefix))}
    application = application_of(app.project.name, entity)
    known = as_after_recovery(app, entity, items)
    pending = sort_pending(known.values(), application, after=applications_before(entity))
    return pending.taken_by(selection).ready


def _not_refused_as_late(app: App, entity: Entity, ready: Sequence[Item]) -> list[Item]:
    bronze = entity.places(app.project.lake).bronze
    last = last_processed(app.store, application_of(app.project.name, entity), bronze)
    return [each for each in ready if may_be_late(entity, each) or not is_late(each, last)]
