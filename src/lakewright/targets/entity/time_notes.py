"""What a plan tells of the processing times of an entity's pending slices, and of late ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import Fault
from lakewright.errors.phrase import Phrase
from lakewright.slices.discover import slice_name
from lakewright.slices.late_advice import late_slices_in
from lakewright.slices.processing_time import future_times_fault
from lakewright.slices.time_check import backdated_note, is_late_allowed
from lakewright.spec.models.entity import Strategy
from lakewright.spec.words import first_of
from lakewright.strategies.delete_inference import late_slice_warning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakewright.manifest.item import Item
    from lakewright.slices.pending import Pending
    from lakewright.targets.entity.work import EntityWork

__all__ = ["future_fault", "late_note", "late_others", "refused_note", "time_note"]

_MOST_NAMED = 3


def future_fault(work: EntityWork, pending: Pending) -> Fault | None:
    """Return that slices which the run processes have times in the future; None if none has."""
    context = work.processing
    taken = (
        item
        for item in pending.ready
        if item.item_id not in pending.late or is_late_allowed(context, work.entity, item)
    )
    given = ((slice_name(item), context.times(work.entity).of_item(item)) for item in taken)
    return future_times_fault(work.entity.called, given, context.strategy_for(work.entity), context.clock())


def time_note(work: EntityWork, pending: Pending) -> tuple[str, ...]:
    """Return that the run refuses the processing time of the next slice, with the commands to type."""
    context = work.processing
    if not pending.ready:
        return ()
    note = backdated_note(context, work.entity, pending.ready, pending.late)
    return () if note is None else (note,)


def late_note(work: EntityWork, pending: Pending) -> tuple[str, ...]:
    """Return that the run refuses late slices, or what they do to records that later slices have told."""
    allowed: list[str] = []
    refused: list[Item] = []
    context = work.processing
    for item in pending.ready:
        if item.item_id in pending.late:
            if is_late_allowed(context, work.entity, item):
                allowed.append(slice_name(item))
            else:
                refused.append(item)
    notes: list[str] = []
    strategy = context.strategy_for(work.entity)
    if refused:
        notes.append(refused_note(work, refused, by="the run"))
    is_historic = strategy is Strategy.HISTORIC  # Merge has tombstones.
    if allowed and is_historic and work.entity.settings.sequence_by is not None:
        notes.append(
            f"{_are_late(allowed)}: sequence_by leaves out rows older than "
            "the table's, but a record whose delete came while it had no row is inserted again"
        )
    warning = late_slice_warning(work.entity, strategy)
    if allowed and warning is not None:
        notes.append(f"{_are_late(allowed)}: {warning}")
    return tuple(notes)


def late_others(work: EntityWork, pending: Pending) -> tuple[Item, ...]:
    """Return the items left to others that are late already, and that every run refuses."""
    late = (item for item in pending.others if item.item_id in pending.late)
    return tuple(item for item in late if not is_late_allowed(work.processing, work.entity, item))


def refused_note(work: EntityWork, refused: Sequence[Item], by: str = "a run") -> str:
    """Return that late slices are refused, with the commands to type."""
    context = work.processing
    found = late_slices_in(context, work.entity, refused[:_MOST_NAMED])
    them = "it" if len(refused) == 1 else "them"
    return Phrase(f"{_are_late(list(map(slice_name, refused)))}: {by} refuses {them}; ", found.remedy)


def _are_late(slices: Sequence[str]) -> str:
    return f"{first_of(slices, _MOST_NAMED)} {'is' if len(slices) == 1 else 'are'} late"
