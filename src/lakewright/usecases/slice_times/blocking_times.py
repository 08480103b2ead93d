"""Slices for which the processing time of a job has no value: no slice of the entity is processed.

`plan` tells it by the job's target; this is told without a plan, from the declaration and the slices' names.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from lakewright.errors import Fault, LakewrightError, UsageError
from lakewright.slices.context import SliceSelection
from lakewright.slices.processing_time import depends_on_slice
from lakewright.spec.expressions.expression import names_in, parse_template
from lakewright.spec.models.entity import Strategy
from lakewright.usecases.slice_times.refused_times import ready_timed
from lakewright.usecases.slice_times.target_times import timed_target, timed_targets

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spec.models.entity import Entity
    from lakewright.usecases.slice_times.target_times import AskedTarget, TimedTarget

__all__ = ["blocked_ready", "blocking_time"]


def blocking_time(app: App, entity: Entity, names: Sequence[str]) -> UsageError | None:
    """Return the error by which a job would process none of these slices, as their times are wrong, or None.

    A time is wrong if the expression has no value for a slice, or one that is not later than that of the
    slice before it in a table of versions.

    Args:
        app: The project.
        entity: The entity.
        names: The slices that the next run would process, in order, without those that it refuses as late.
    """
    for asked in timed_targets(app, entity.called, names[0]) if names else ():
        try:
            found = timed_target(app, asked)
        except (LakewrightError, ValueError):  # parameters are unknown or have changed
            continue
        if found is not None and _is_told_by_slices(found, asked):
            takes = SliceSelection(found.target.slices, found.target.until).takes
            if (error := _error(found, filter(takes, names))) is not None:
                return error
    return None


def blocked_ready(app: App, ready: Container[str]) -> Iterator[tuple[str, Fault]]:
    """Yield the entities of which a job would process no ready slice, as the time of one is wrong, with why.

    Args:
        app: The project.
        ready: Names of the entities that have ready slices: only these are read.
    """
    for entity, names in ready_timed(app, ready):
        if (error := blocking_time(app, entity, names)) is not None:
            yield entity.called, error.as_fault()


def _is_told_by_slices(found: TimedTarget, asked: AskedTarget) -> bool:
    """Return whether the names of slices tell their times, and no parameter that is not known.

    Several slices may tell the parameters of one run, whose one time they all get.
    """
    job, _, parameters = asked
    text = found.times.text
    if text is None:
        return False
    try:
        is_of_slice = depends_on_slice(text)
        used = names_in(parse_template(text))
    except LakewrightError:  # `validate` tells it
        return False
    return not any(
        each.name in used and each.name not in parameters and (each.default is None or not is_of_slice)
        for each in job.parameters
    )


def _error(found: TimedTarget, taken: Iterable[str]) -> UsageError | None:
    names = list(taken)
    strategy = found.target.strategy or found.entity.strategy
    try:
        if strategy is Strategy.HISTORIC:
            found.times.check_order(names, found.entity.called)
        for name in names:
            found.times.at(name)
    except UsageError as error:
        return error
    return None
