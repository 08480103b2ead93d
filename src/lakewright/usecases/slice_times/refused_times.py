"""Whether the next run refuses the processing times of slices, as they are declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from lakewright.errors import BackdatedError, LakewrightError, UsageError
from lakewright.slices.processing_time import depends_on_slice
from lakewright.slices.time_check import early_error, early_note, unknown_time_note
from lakewright.spec.expressions.expression import names_in, parse_template
from lakewright.usecases.placed import chain_of
from lakewright.usecases.slice_times.declared_times import (
    AskedTarget,
    TimedTarget,
    known_targets,
    timed_targets,
)

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spec.models.entity import Entity

__all__ = [
    "blocking_time",
    "refused_arrived",
    "requeued_time_note",
]


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
