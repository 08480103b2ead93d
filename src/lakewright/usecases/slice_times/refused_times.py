"""Whether the next run would refuse the processing times of slices that are ready, as a failed one did.

Such a run fails before it locks a slice, so that the manifest has nothing to resolve, and to resume it does
not help. The slices are looked for as they are now: somebody may have processed them, or later ones, since.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from lakewright.errors import BackdatedError, LakewrightError, UsageError
from lakewright.errors.phrase import Command
from lakewright.plan.status import Status
from lakewright.slices.application import applications_before
from lakewright.slices.chain import OPEN
from lakewright.slices.context import ALL_SLICES, SliceSelection
from lakewright.slices.discover import natural_key, slice_name
from lakewright.slices.pending import sort_pending
from lakewright.slices.processed import is_late
from lakewright.slices.processing_time import depends_on_slice
from lakewright.slices.recover_from_log import as_if_recovered
from lakewright.slices.time_check import early_error, early_note, may_be_late, unknown_time_note
from lakewright.spec.expressions.expression import names_in, parse_template
from lakewright.usecases.placed import chain_of
from lakewright.usecases.slice_times.declared_times import (
    AskedTarget,
    TimedTarget,
    declares_time,
    is_timed,
    known_targets,
    timed_targets,
)

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.item import Item
    from lakewright.manifest.journal import Run
    from lakewright.run.build_history import Instance
    from lakewright.slices.chain import SliceChain
    from lakewright.spec.models.entity import Entity

__all__ = [
    "blocking_time",
    "commands_for_times",
    "gives_place",
    "ready_timed",
    "refused_arrived",
    "refused_time",
    "requeued_time_note",
]

_UNDONE = (Status.FAILED.value, Status.ABORTED.value, Status.BLOCKED.value)


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
    undone = ((job, *each) for each in _undone(app, run, left))
    return _first_refused(app, undone, partial(_ready_names, app))


def refused_arrived(app: App, entity: str, names: Sequence[str]) -> BackdatedError | None:
    """Return the error with which a job would fail that takes slices which no run has seen yet, or None.

    Args:
        app: The project.
        entity: The entity.
        names: The slices, in order.
    """
    return _first_refused(app, timed_targets(app, entity, names), lambda found: found.taken(names))


def _first_refused(
    app: App, asked: Iterable[AskedTarget], taken: Callable[[TimedTarget], Sequence[str]]
) -> BackdatedError | None:
    """Return the error of the first target whose times for the slices that it takes would be refused."""
    for found in known_targets(app, asked):
        with suppress(LakewrightError, ValueError):  # it is only a forecast
            names = taken(found) if found.is_historic else ()
            error = early_error(chain_of(app, found.entity), names, found.times) if names else None
            if error is not None:
                return error
    return None


def _ready_names(app: App, found: TimedTarget) -> list[str]:
    """Return the names of ready slices that a target takes and whose time counts; none if it suffices."""
    chain = chain_of(app, found.entity)
    ready = _ready(chain, found.selection)
    if not ready or early_error(chain, list(map(slice_name, ready)), found.times) is None:
        return []
    # Which slices are late takes a look at those that are processed, so only where it matters.
    timed = _not_refused_as_late(chain, ready)
    if not timed or chain.has_landed(timed[0]):
        return []
    return list(map(slice_name, timed))


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


def _ready(chain: SliceChain, selection: SliceSelection) -> tuple[Item, ...]:
    items = {item.item_id: item for item in chain.items(*OPEN)}
    items |= as_if_recovered(chain, items.values())
    pending = sort_pending(items.values(), chain.application, after=applications_before(chain.entity))
    return pending.taken_by(selection).ready


def _not_refused_as_late(chain: SliceChain, ready: Sequence[Item]) -> list[Item]:
    last = chain.last_processed()
    return [each for each in ready if may_be_late(chain.entity, each) or not is_late(each, last)]


def ready_timed(app: App, ready: Container[str]) -> Iterator[tuple[Entity, list[str]]]:
    """Yield the entities whose times a job declares, with their ready slices that are not late, in order.

    Args:
        app: The project.
        ready: Names of the entities that have ready slices: only these are read.
    """
    for name, entity in app.project.entities.items():
        if name not in ready or not entity.enabled or not is_timed(app, entity.called):
            continue
        with suppress(LakewrightError):  # what can't be read is told by itself
            chain = chain_of(app, entity)
            timely = _not_refused_as_late(chain, _ready(chain, ALL_SLICES))
            yield entity, sorted(map(slice_name, timely), key=natural_key)


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
    for found in () if note else known_targets(app, timed_targets(app, entity.called, names)):
        taken = found.taken(names) if found.is_historic else ()
        try:
            _ = [found.times.at(name) for name in taken[:1]]
        except LakewrightError:
            with suppress(LakewrightError):
                note = note or unknown_time_note(chain_of(app, entity), str(found.times.text))
    return note


def gives_place(error: BackdatedError) -> bool:
    """Return whether a rebuild puts the refused slices in their place."""
    return error.details["rebuild"] is not None


def commands_for_times(error: BackdatedError) -> tuple[tuple[Command, ...], bool]:
    """Return the commands to type about refused slices, and whether these are for all of the slices.

    A rebuild puts all in their place. Later times, by which their rows become the current ones, are only told
    where none does.
    """
    details = error.details
    if gives_place(error):
        return (details["rebuild"],), True
    typed = tuple(details["commands"])
    return typed, len(typed) == details["slices"]


def blocking_time(app: App, entity: Entity, names: Sequence[str]) -> UsageError | None:
    """Return the error by which a job would process none of these slices, as their times are wrong, or None.

    A time is wrong if the expression has no value for a slice, or one that is not later than that of the
    slice before it in a table of versions. `plan` tells it by the job's target; this is told without a plan,
    from the declaration and the slices' names.

    Args:
        app: The project.
        entity: The entity.
        names: The slices that the next run would process, in order, without those that it refuses as late.
    """
    for found in known_targets(app, timed_targets(app, entity.called, names)):
        if not _is_told_by_slices(found):
            continue
        try:
            found.times.check_order(found.taken(names), found.entity.called, is_historic=found.is_historic)
        except UsageError as error:
            return error
    return None


def _is_told_by_slices(found: TimedTarget) -> bool:
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
