"""Whether the processing times of slices are later than the versions of the table, before anything is locked.

Source: `processing-strategies.md`, "Processing Time Override". That a refusal names the commands to type is
Lakewright's own.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lakewright.errors import BackdatedError, LakewrightError
from lakewright.lake.observation import latest_instant_since, latest_instant_told, observe_table
from lakewright.slices.discover import slice_name
from lakewright.slices.processed import Placement
from lakewright.slices.processing_time import ProcessingTimes
from lakewright.slices.recover_from_log import has_landed
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.adoption.columns import is_adoptable
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.item import Item
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.processed import OlderSlice
    from lakewright.spec.models.entity import Entity

__all__ = [
    "ALL_DECLARED",
    "backdated_note",
    "check_processing_times",
    "check_times_known",
    "early_error",
    "early_note",
    "is_late_allowed",
    "may_be_late",
    "placement_in",
    "rebuild_with",
    "repetition_commands",
    "requeueing_undo",
    "unknown_time_note",
]

ALL_DECLARED = (
    "Or give each slice the time that a job declares for it: empty the table with `lakewright job JOB "
    "truncate -t TARGET`, then run the job for all slices."
)
"""What makes the times of all slices follow the order of their names."""

_BACKDATED = "--allow-backdated permits the earlier one, unless versions of a record would overlap."

MOST_TYPED = 3
"""Commands in a remedy; the slices after them follow the same pattern."""

MOST_INCLUDED = 20
"""The largest number of slices of which a remedy types the rebuild that puts them in their place."""


def check_processing_times(
    context: ProcessingContext,
    entity: Entity,
    chosen: Sequence[Item],
    times: ProcessingTimes,
    late: frozenset[str],
) -> None:
    """Raise an error unless the processing time is later than the beginning and end of every version.

    If the commit of the first slice has landed already, its own versions do not count. A late slice that is
    refused as such needs no time.

    Raises:
        UsageError: One processing time is given for several slices, or times are not in order.
        BackdatedError: The processing time is too early.
    """
    timed = check_times_known(context, entity, chosen, times, late)
    if not _may_be_refused(context, entity, timed):
        return
    silver = entity.places(context.lake.settings).silver
    if is_adoptable(entity, observe_table(context.lake, silver)):
        return
    at = times.of_item(timed[0]) or context.clock()
    newest = latest_instant_since(context.lake, silver, _version_columns(context.lake, entity), at)
    if newest is not None:
        names, placement = [slice_name(item) for item in timed], placement_in(context, entity)
        raise _backdated_error(
            entity, names, times, at=at, newest=newest, silver=str(silver), placement=placement
        )


def _may_be_refused(context: ProcessingContext, entity: Entity, timed: Sequence[Item]) -> bool:
    """Return whether versions of the table may refuse the time of the first of some slices."""
    is_checked = context.strategy_for(entity) is Strategy.HISTORIC
    if not timed or not is_checked or context.options.permissions.allow_backdated:
        return False
    silver = entity.places(context.lake.settings).silver
    return not has_landed(context.lake, silver, timed[0], context.application)


def check_times_known(
    context: ProcessingContext,
    entity: Entity,
    chosen: Sequence[Item],
    times: ProcessingTimes,
    late: frozenset[str],
) -> list[Item]:
    """Return the items that need a time; a late slice that is refused as such needs none.

    Raises:
        UsageError: A slice has no time, one is given for several slices, or times are not in order.
    """
    timed = _timed(context, entity, chosen, late)
    names = [slice_name(item) for item in timed]
    times.check_order(names, entity.called, is_historic=context.strategy_for(entity) is Strategy.HISTORIC)
    return timed


def placement_in(context: ProcessingContext, entity: Entity) -> Placement:
    """Return the processed slices of an entity in the context of a run."""
    bronze = entity.places(context.lake.settings).bronze
    is_historic = context.strategy_for(entity) is Strategy.HISTORIC
    return Placement(context.ledger.store, context.application, bronze, is_historic)


def backdated_note(
    context: ProcessingContext,
    entity: Entity,
    chosen: Sequence[Item],
    times: ProcessingTimes,
    late: frozenset[str],
) -> str | None:
    """Return that a run would refuse the declared times, with the commands to type; None if it would not.

    Only the statistics of the table's files are read: a plan does not start Spark for it.
    """
    timed = _timed(context, entity, chosen, late)
    if not _may_be_refused(context, entity, timed):
        return None
    names, placement = [slice_name(item) for item in timed], placement_in(context, entity)
    return early_note(early_error(context.lake, entity, names, times, placement=placement))


def early_note(error: BackdatedError | None) -> str | None:
    """Return that a run would refuse a time, with the commands to type; None if it would not."""
    return None if error is None else f"the run refuses it: {error.message}. {error.remedy}"


def early_error(
    lake: Lake,
    entity: Entity,
    names: Sequence[str],
    times: ProcessingTimes,
    *,
    placement: Placement | None = None,
    after: datetime | None = None,
) -> BackdatedError | None:
    """Return the error with which a run would refuse the time of the first of these slices, or None.

    Only the statistics of the table's files are read. The details have the first `commands` that give later
    times, how many `slices` need one, and the `rebuild` that puts them in their place, or None. With `after`,
    the table is expected to have a version of that time then.

    Args:
        lake: The lake.
        entity: The entity.
        names: The slices.
        times: Their processing times.
        placement: The processed slices; without it, any slice has its place by its time.
        after: The time of a version that the table is going to have.
    """
    at, silver = times.at(names[0]), entity.places(lake.settings).silver
    newest = latest_instant_told(lake, silver, _version_columns(lake, entity))
    if newest is not None and after is not None:
        newest = max(newest, after)
    if at is None or newest is None or newest < at:
        return None
    return _backdated_error(
        entity, names, times, at=at, newest=newest, silver=str(silver), placement=placement
    )


def repetition_commands(context: ProcessingContext, entity: Entity, names: Sequence[str]) -> str | None:
    """Return the commands that process slices again whose declared times a run would refuse.

    They give times after those of all these slices, which may not be in the table yet.

    Args:
        context: The context of the run that tells them.
        entity: The entity.
        names: The slices, in order.

    Returns:
        None if a run takes the slices, or if their times are not known.
    """
    options = context.options
    if options.processing_time is None or context.strategy_for(entity) is not Strategy.HISTORIC:
        return None
    zone, taken = context.lake.settings.zone, options.selection.takes
    # An instance of another day has another time.
    runs = () if taken(names[0]) else options.other_runs(names[:1])
    scope = (options.scope or Scope()).child({key: text for run in runs for key, text in run.parameters})
    here = ProcessingTimes.of(options, zone, context.warn)
    there = ProcessingTimes.of(replace(options, scope=scope), zone, context.warn)
    try:
        own = [at for at in map(here.at, filter(taken, names)) if at is not None]
        placement = placement_in(context, entity)
        last = max(own, default=None)
        error = early_error(context.lake, entity, names, there, placement=placement, after=last)
    except LakewrightError:  # the run tells it: this is only a forecast
        return None
    return None if error is None else _in_turn(error.details["commands"], error.details["slices"])


def unknown_time_note(lake: Lake, entity: Entity, text: str) -> str | None:
    """Return that only a run knows the time that it gives a slice, and which it would refuse.

    None if the table has no versions, so that it would refuse none. Only the statistics of the table's files
    are read.
    """
    silver = entity.places(lake.settings).silver
    newest = latest_instant_told(lake, silver, _version_columns(lake, entity))
    if newest is None:
        return None
    return (
        f"whether the run refuses it is not known: its processing time is {text!r}, which depends on the "
        f"run's parameters, and must be later than {newest.isoformat()}, the time of the newest version in "
        f"{silver}"
    )


def is_late_allowed(context: ProcessingContext, entity: Entity, item: Item) -> bool:
    """Return whether an item may be processed after later ones: by the entity, the run or its requeue."""
    return may_be_late(entity, item) or context.options.permissions.allow_late


def may_be_late(entity: Entity, item: Item) -> bool:
    """Return whether any run may process an item after later ones: by the entity, or by its requeue."""
    is_noted = item.new is not None and item.new.note.get("allow_late") is True
    return is_noted or entity.settings.late_slices == "apply"


def _timed(
    context: ProcessingContext, entity: Entity, chosen: Iterable[Item], late: frozenset[str]
) -> list[Item]:
    """Return the items that are not refused for being late."""
    return [item for item in chosen if item.item_id not in late or is_late_allowed(context, entity, item)]


def _version_columns(lake: Lake, entity: Entity) -> tuple[str, str]:
    system = SystemColumns(lake.settings.systemfield_prefix, entity.destination)
    return system.valid_from, system.valid_to


def _backdated_error(
    entity: Entity,
    names: Sequence[str],
    times: ProcessingTimes,
    *,
    at: datetime,
    newest: datetime,
    silver: str,
    placement: Placement | None,
) -> BackdatedError:
    early = [name for name in names if (times.at(name) or at) <= newest]
    # The caller's strategy is Historic; `process` takes the entity's own.
    by = "" if entity.strategy is Strategy.HISTORIC else f" --strategy {Strategy.HISTORIC.value}"
    next_second = newest.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1)
    typed = [
        f"lakewright process {shlex.join((entity.called, name))} "
        f"--processing-time {(next_second + timedelta(seconds=number)).isoformat()}{by}"
        for number, name in enumerate(early[:MOST_TYPED])
    ]
    older = _older_but_later(placement, early, times)
    # A rebuild applies slices by the entity's own strategy.
    has_place = times.is_declared and older is None and entity.strategy is Strategy.HISTORIC
    rebuild = rebuild_with(entity.called, early) if has_place else None
    return BackdatedError(
        f"the processing time {at.isoformat()} is not later than {newest.isoformat()}, "
        f"the time of the newest version in {silver}{'' if older is None else f'; {older.words}'}",
        remedy=f"{_times_remedy(rebuild, typed, len(early))} {_BACKDATED if older is None else ALL_DECLARED}",
        details={
            "processing_time": at.isoformat(),
            "newest": newest.isoformat(),
            "commands": typed,
            "rebuild": rebuild,
            "slices": len(early),
        },
    )


def _older_but_later(
    placement: Placement | None, names: Sequence[str], times: ProcessingTimes
) -> OlderSlice | None:
    """Return a slice before one of these by name that has a later time, or None."""
    if placement is None:
        return None
    places = (placement.place_of(name, times.at(name)) for name in names[:MOST_TYPED])
    return next((each.older for each in places if each is not None and each.older is not None), None)


def rebuild_with(called: str, names: Sequence[str]) -> str:
    """Return the command that gives slices of an entity their place among those before and after them."""
    included = [word for name in names for word in ("--include", name)]
    return shlex.join(("lakewright", "rebuild", called, *included))


def requeueing_undo(called: str, name: str) -> str:
    """Return the command that takes a slice back with those after it, so that the next run processes them."""
    return shlex.join(("lakewright", "undo", called, name, "--requeue"))


def _times_remedy(rebuild: str | None, typed: Sequence[str], slices: int) -> str:
    """Return what to type about slices whose times are too early, as sentences.

    Args:
        rebuild: The command that puts them in their place, if one does.
        typed: The first commands that give them later times.
        slices: Their number.
    """
    if rebuild is None:
        return f"Give a later time: {_in_turn(typed, slices)}."
    it, its = ("it", "its") if slices == 1 else ("them", "their")
    included = f"`{rebuild}`"
    if slices > MOST_INCLUDED:
        included = f"`{shlex.join(shlex.split(rebuild)[:3])}`, with `--include SLICE` for each"
    later = f"Only to make {its} rows the current ones: {_in_turn(typed, slices)}."
    return f"Put {it} in {its} place: {included}. {later}"


def _in_turn(typed: Sequence[str], slices: int) -> str:
    """Return the first commands for slices, of which each needs one, as text."""
    rest = slices - len(typed)
    also = f", and so on for {rest} more, each a second later" if rest else ""
    return ", then ".join(f"`{each}`" for each in typed) + also
