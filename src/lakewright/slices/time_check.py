"""Whether the processing times of slices are later than the versions of the table, before anything is locked.

Source: `processing-strategies.md`, "Processing Time Override".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lakewright.errors import BackdatedError, LakewrightError, UsageError
from lakewright.errors.phrase import Command, Option, Phrase
from lakewright.lake.observation import latest_instant_since, observe_table
from lakewright.manifest.payload import MAY_SKIP, PERMITTED_BY
from lakewright.slices.discovery import slice_name
from lakewright.slices.processing_time import APART
from lakewright.spec.grants import Grant
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.adoption import is_adoptable
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from lakewright.manifest.item import Item
    from lakewright.slices.chain import SliceChain
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.processing_time import ProcessingTimes
    from lakewright.spec.models.entity import Entity


_BACKDATED = Phrase(
    Option("--allow-backdated"), " permits the earlier one, unless versions of a record would overlap."
)


def check_processing_times(
    context: ProcessingContext, entity: Entity, chosen: Sequence[Item], late: frozenset[str]
) -> None:
    """Raise an error unless the processing time is later than the beginning and end of every version.

    If the commit of the first slice has landed already, its own versions do not count. A late slice that is
    refused as such needs no time.

    Raises:
        UsageError: One processing time is given for several slices, or times are not in order.
        BackdatedError: The processing time is too early.
    """
    error: LakewrightError | None = times_error(context, entity, chosen, late)
    if error is None:
        error = _backdated(context, entity, _timed(context, entity, chosen, late), context.clock())
    if error is not None:
        raise error


def check_column_time(
    context: ProcessingContext, entity: Entity, item: Item, at: datetime, before: datetime | None = None
) -> None:
    """Raise an error unless the time that a slice gives itself is later than all versions.

    Args:
        context: The context of the processing.
        entity: The entity.
        item: The slice.
        at: Its time.
        before: The time of the slice before it in the same commit; None if it is the first one.

    Raises:
        BackdatedError: The time is too early.
    """
    lake, chain = context.lake, context.chain(entity)
    if not _may_be_refused(context, entity, (item,)):
        return
    if before is None and is_adoptable(entity, observe_table(lake, chain.silver)):
        return
    newest = before or _newest(chain, at)
    if newest is not None and at <= newest:
        allow = Command("apply", entity.called, "--allow", Grant.BACKDATED)
        raise BackdatedError(
            f"the time {at.isoformat()} that {slice_name(item)} gives itself is not later than "
            f"{newest.isoformat()}, the time of the newest version in {chain.silver}",
            remedy=Phrase("Correct its times. ", allow, " permits them, unless versions would overlap."),
            details={
                "processing_time": at.isoformat(),
                "newest": newest.isoformat(),
                "slices": [slice_name(item)],
                MAY_SKIP: True,
                PERMITTED_BY: Grant.BACKDATED,
            },
            subject=slice_name(item),
        )


def _may_be_refused(context: ProcessingContext, entity: Entity, timed: Sequence[Item]) -> bool:
    """Return whether versions of the table may refuse the time of the first of some slices."""
    is_checked = context.strategy_for(entity) is Strategy.HISTORIC
    if not timed or not is_checked or context.options.permissions.allow_backdated:
        return False
    return not context.chain(entity).has_landed(timed[0])


def times_error(
    context: ProcessingContext, entity: Entity, chosen: Sequence[Item], late: frozenset[str]
) -> UsageError | None:
    """Return why slices cannot have the declared processing times; None if they can.

    One has no time, one time is given for several, or times are not in order. A late slice that is refused as
    such needs none.
    """
    names = [slice_name(item) for item in _timed(context, entity, chosen, late)]
    is_historic = context.strategy_for(entity) is Strategy.HISTORIC
    try:
        context.times(entity).check_order(names, entity.called, is_historic=is_historic)
    except UsageError as error:
        return error
    return None


def is_late_allowed(context: ProcessingContext, entity: Entity, item: Item) -> bool:
    """Return whether an item may be processed after later ones: by the entity, the run or its requeue."""
    return item.may_be_late or entity.settings.late_slices == "end" or context.options.permissions.allow_late


def _timed(
    context: ProcessingContext, entity: Entity, chosen: Iterable[Item], late: frozenset[str]
) -> list[Item]:
    """Return the items that are not refused for being late."""
    return [item for item in chosen if item.item_id not in late or is_late_allowed(context, entity, item)]


def planned_time_error(
    context: ProcessingContext, entity: Entity, chosen: Sequence[Item], late: frozenset[str] = frozenset()
) -> BackdatedError | None:
    """Return the error with which a run would refuse the declared times, or None if it would not.

    Only the statistics of the table's files are read: a plan does not start Spark for it.
    """
    return _backdated(context, entity, _timed(context, entity, chosen, late))


def _backdated(
    context: ProcessingContext, entity: Entity, timed: Sequence[Item], now: datetime | None = None
) -> BackdatedError | None:
    """Return the error of slices whose times are not later than the versions of the table, or None.

    Without the time of now, Spark is not asked, and slices without a time of their own have none yet.
    """
    times, chain = context.times(entity), context.chain(entity)
    if times.column is not None or not _may_be_refused(context, entity, timed):
        return None
    if is_adoptable(entity, observe_table(chain.lake, chain.silver)):
        return None
    at = times.of_item(timed[0]) or now
    newest = None if at is None else _newest(chain, at, with_spark=now is not None)
    if at is None or newest is None:
        return None
    return _backdated_error(chain, list(map(slice_name, timed)), times, at=at, newest=newest)


def _newest(chain: SliceChain, at: datetime, *, with_spark: bool = True) -> datetime | None:
    """Return the latest beginning or end of a version in the table; None if none is at a time, or later."""
    system = SystemColumns(chain.lake.settings.systemfield_prefix, chain.entity.destination)
    columns = system.valid_from, system.valid_to
    return latest_instant_since(chain.lake, chain.silver, columns, at, with_spark=with_spark)


def _backdated_error(
    chain: SliceChain, names: Sequence[str], times: ProcessingTimes, *, at: datetime, newest: datetime
) -> BackdatedError:
    early = [name for name in names if (times.at(name) or at) <= newest]
    # The caller's strategy is Historic; `process` and `rebuild` take the entity's own.
    is_own = chain.entity.strategy is Strategy.HISTORIC
    by = () if is_own else ("--strategy", Strategy.HISTORIC.value)
    later = (newest.astimezone(UTC).replace(microsecond=0) + APART).isoformat()
    typed = Command("process", chain.entity.called, early[0], "--processing-time", later, *by)
    included = [word for name in early for word in ("--include", name)]
    rebuild = Command("rebuild", chain.entity.called, *included)
    placed = Phrase("In its place among the others, at its own time: ", rebuild, ". ") if is_own else ""
    return BackdatedError(
        f"the processing time {at.isoformat()} is not later than {newest.isoformat()}, "
        f"the time of the newest version in {chain.silver}",
        remedy=Phrase(placed, "After the others, at a later time: ", typed, ". ", _BACKDATED),
        details={
            "processing_time": at.isoformat(),
            "newest": newest.isoformat(),
            "slices": early,
            PERMITTED_BY: Grant.BACKDATED,
        },
    )
