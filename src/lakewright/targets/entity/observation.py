"""The observation of an entity target: the state of its silver table and the slices that it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.errors import (
    Fault,
    LakeMoved,
    LakewrightError,
    LeaseHeld,
    SliceError,
    SliceUnsettled,
)
from lakewright.errors.phrase import Phrase
from lakewright.lake.delta_log import VECTORS
from lakewright.lake.observation import table_log
from lakewright.plan.observation import Answer, Hold, Observation, TableChange
from lakewright.plan.reason import Code, note
from lakewright.slices.deviations import late_advice
from lakewright.slices.discovery import check_unchanged, slice_name
from lakewright.slices.fold import planned_folds
from lakewright.slices.lost_table import find_loss, find_other_writers, refusal_of
from lakewright.slices.past_versions import lacks_past, planned_past
from lakewright.slices.pending_slices import Pending, find_pending, holding_error
from lakewright.slices.processing_time import future_times_fault
from lakewright.slices.rewind.side_table import left_beside
from lakewright.slices.time_check import is_late_allowed, planned_time_error, times_error
from lakewright.slices.validation import preview_next_slice
from lakewright.spec.reason import Reason
from lakewright.spec.words import first_of
from lakewright.strategies.adoption import adopted_columns
from lakewright.strategies.delete_inference import late_slice_warning
from lakewright.strategies.outdated import narrowed_columns, outdated_rows
from lakewright.targets.entity.work import EntityWork
from lakewright.transform.system_columns import SystemColumns

if TYPE_CHECKING:
    from lakewright.lake.delta_log import TableState
    from lakewright.manifest.rewind import Rewind
    from lakewright.spec.models.entity import Entity


_MOST_NAMED = 3


def observe_entity(work: EntityWork) -> Observation:
    """Return the state of an entity's silver table and of its slices; nothing is recorded."""
    pending, hold = _find_slices(work)
    # In this order: a run that goes on meanwhile makes the table first, and then records its slice.
    processed = work.chain.first_processed
    state = work.table_state()
    lost, misfit = find_loss(work.chain), refusal_of(work.processing, work.entity, state)
    rewind = work.chain.rewind
    is_rewinding = rewind is not None and work.context.ledger.is_rewinding(rewind)
    held_by = rewind.error() if rewind is not None and is_rewinding else None
    untimed = times_error(work.processing, work.entity, pending.ready, pending.late)
    holding = (lost, misfit, untimed, held_by) if pending.ready else ()
    if (error := next(filter(None, holding), None)) is not None:
        is_locked = isinstance(error, LeaseHeld)
        pending, hold = pending.all_waiting(), Hold(error.as_fault(), is_locked=is_locked)
    if work.context.options.wait and hold is not None and hold.is_locked:
        pending, hold = _after_waiting(work, pending), None
    # TRUNCATE and DESTROY also make the manifest forget slices, whether or not the table exists.
    is_filled = True if processed is not None else (None if state.is_empty is None else not state.is_empty)
    selection, refused = work.selection, _refused_late(work, pending)
    others = None if processed is None else find_other_writers(work.processing, work.entity)
    late = [slice_name(item) for item in pending.others if item.item_id in refused]
    recovered = tuple(map(slice_name, pending.unrecorded))
    beside = None if is_rewinding else _beside_note(work)
    notes = (*_notes(work, state, pending, refused, None if hold is not None else misfit), beside)
    return Observation(
        " ".join(filter(None, (str(work.silver_resource), str(selection)))),
        exists=Answer.of(state.exists),
        filled=Answer.of(is_filled),
        changes=(
            *property_changes(work.entity, state),
            *feature_changes(work.entity, state),
            *comment_changes(work.entity, state),
            *_adoption_changes(work, state, pending),
        ),
        pending=tuple(map(slice_name, pending.ready)),
        waiting=tuple(map(slice_name, pending.waiting)),
        others=tuple(name for name in map(slice_name, pending.others) if name not in late),
        late=_late_reason(work, late, "a run") if late else None,
        recovered=recovered,
        unrecorded=tuple(_recorded_first(recovered, None if is_rewinding else rewind)),
        overtaken=tuple(name for name in map(slice_name, pending.overtaken()) if name not in late),
        waits_for=pending.waits_for,
        hold=hold,
        idle=pending.deviations.idle_reason(selection.takes, str(selection)),
        notes=tuple(each if isinstance(each, Reason) else note(each) for each in notes if each),
        warning=_warning(pending, hold, others, _future_fault(work, pending, refused))
        if lost is None or hold is not None
        else lost.as_fault(),
    )


def _notes(
    work: EntityWork,
    state: TableState,
    pending: Pending,
    refused: Set[str],
    misfit: LakewrightError | None,
) -> Iterator[Reason | str | None]:
    """Yield the effects of the next slices, and what else a user may want to know of them and the table.

    Args:
        work: The entity.
        state: The state of its table.
        pending: Its slices.
        refused: The ids of the late ones that a run refuses.
        misfit: Why no further slice will be processed, if none waits whose hold says so.
    """
    processing, entity = work.processing, work.entity
    yield preview_next_slice(processing, entity, pending) if work.context.options.preview else None
    yield from pending.deviations.notes
    yield planned_folds(processing, entity, pending.ready, late=pending.late)
    if misfit is not None:
        do = Phrase(" (", misfit.remedy, ")") if misfit.remedy else ""
        yield Phrase(f"no further slice will be processed: {misfit.message}", do)
    yield from (each.text for each in outdated_rows(state, entity, work.lake.settings))
    yield from narrowed_columns(state, entity)
    if pending.ready and lacks_past(entity, processing.strategy_for(entity), state):
        yield planned_past(entity)
    if (error := planned_time_error(processing, entity, pending.ready, pending.late)) is not None:
        yield Phrase(f"the run refuses it: {error.message}. ", error.remedy or "")
    own = [slice_name(item) for item in pending.ready if item.item_id in refused]
    if own:
        yield _late_reason(work, own, "the run")
    taken = [slice_name(item) for item in pending.ready if item.item_id in pending.late - refused]
    warning = late_slice_warning(entity, processing.strategy_for(entity))
    if taken and warning is not None:
        are = "is" if len(taken) == 1 else "are"
        yield f"{first_of(taken, _MOST_NAMED)} {are} late: {warning}"
    yield _failing_note(pending)


def _future_fault(work: EntityWork, pending: Pending, refused: Set[str]) -> Fault | None:
    """Return that slices which the run processes have times in the future; None if none has."""
    context = work.processing
    taken = (item for item in pending.ready if item.item_id not in refused)
    given = ((slice_name(item), context.times(work.entity).of_item(item)) for item in taken)
    return future_times_fault(work.entity.called, given, context.strategy_for(work.entity), context.clock())


def _refused_late(work: EntityWork, pending: Pending) -> Set[str]:
    """Return the ids of the slices that are late, and that a run refuses."""
    late = (item for item in (*pending.ready, *pending.others) if item.item_id in pending.late)
    return {item.item_id for item in late if not is_late_allowed(work.processing, work.entity, item)}


def _late_reason(work: EntityWork, names: Sequence[str], by: str) -> Reason:
    advice = late_advice(work.entity, work.processing.strategy_for(work.entity), names[0])
    return Reason(Code.LATE, {"slices": names, "by": by, "advice": advice})


def _failing_note(pending: Pending) -> str | None:
    """Return which ready slices the run fails because of their files, as far as the listing shows it."""
    present = {slice_.item_id: slice_ for slice_ in pending.deviations.listing.slices}
    found = []
    for item in pending.ready if pending.deviations.lost is None else ():
        if item.tokens:  # a commit was attempted before: the run looks into the table first
            continue
        try:
            check_unchanged(item, present.get(item.item_id), pending.deviations.bronze)
        except SliceUnsettled:
            continue  # the run records the present listing
        except SliceError as error:
            found.append(error.message)
    return f"these will fail: {first_of(found, _MOST_NAMED, '; ')}" if found else None


def _warning(pending: Pending, hold: Hold | None, others: Fault | None, future: Fault | None) -> Fault | None:
    """Return the deviations of bronze, after what holds slices back if others are processed before them.

    That other programs have changed rows comes before the deviations, and that the time of a slice is in the
    future after them.
    """
    found = pending.deviations.fault
    found = future if found is None else found.and_also(future)
    found = found if others is None else others.and_also(found)
    return hold.error.and_also(found) if hold is not None and pending.ready else found


def feature_changes(entity: Entity, state: TableState) -> tuple[TableChange, ...]:
    """Return what CREATE does so that any reader can read the table."""
    if entity.settings.readers != "any" or VECTORS not in state.features:
        return ()
    text = f"drop the table feature {VECTORS}, and write the files with marked rows again"
    return (TableChange(text),)


def property_changes(entity: Entity, state: TableState) -> tuple[TableChange, ...]:
    """Return the table properties that differ from those that the entity declares."""
    if not state.exists:
        return ()
    return tuple(
        TableChange(f"set table property {key} to {value}")
        for key, value in entity.settings.silver_properties.items()
        if state.properties.get(key) != value
    )


def new_comments(entity: Entity, state: TableState) -> dict[str, str]:
    """Return the declared descriptions of columns that have other comments in the table."""
    present = {name: state.column(name) for name in entity.descriptions}
    return {
        column.name: entity.descriptions[name]
        for name, column in present.items()
        if column is not None and column.description != entity.descriptions[name]
    }


def comment_changes(entity: Entity, state: TableState) -> tuple[TableChange, ...]:
    """Return the comments of columns that CREATE would change."""
    return tuple(TableChange(f"change the comment of column {name}") for name in new_comments(entity, state))


def _adoption_changes(work: EntityWork, state: TableState, pending: Pending) -> tuple[TableChange, ...]:
    """Return what adopting the table would change; empty until a ready slice shows how rows are hashed."""
    if not work.is_adoptable(state) or not pending.ready:
        return ()
    system = SystemColumns(work.lake.settings.systemfield_prefix, work.entity.destination)
    changes = adopted_columns(work.entity, state, system).changes(system, state.rows)
    return tuple(map(TableChange, changes))


def _find_slices(work: EntityWork) -> tuple[Pending, Hold | None]:
    """Return the slices, and the lock or failure that holds them back; nothing is recorded."""
    processing = work.processing
    try:
        pending = find_pending(processing, work.entity, is_recorded=False)
    except LakeMoved as moved:
        return Pending(), Hold(moved.as_fault(), is_locked=False)
    error = holding_error(processing, work.entity, pending)
    if error is None:
        return pending, None
    is_locked = pending.held is not None and pending.held.processing is not None
    return pending, Hold(error.as_fault(), is_locked=is_locked)


def _recorded_first(recovered: Sequence[str], rewind: Rewind | None) -> Iterator[Reason]:
    """Yield what the run first records: a rewind that died, and slices that the manifest lacks."""
    if rewind is not None:
        yield Reason(Code.NOT_ENDED, {"what": rewind.words})
    if recovered:
        yield Reason(Code.UNRECORDED, {"slices": recovered})


def _beside_note(work: EntityWork) -> str | None:
    """Return what a rewind has left beside the table, if that is known without Spark."""
    if work.silver.location is None or table_log(work.lake, work.silver) is None:
        return None
    left = left_beside(work.lake, work.entity)
    return None if left is None else Phrase(f"{left.words}; ", left.advice)


def _after_waiting(work: EntityWork, pending: Pending) -> Pending:
    """Return the slices as they would be once the run that holds one of them has ended."""
    is_own = pending.held is not None and work.selection.takes(slice_name(pending.held))
    held = (pending.held,) if pending.held is not None and is_own else ()
    return replace(pending, ready=(*pending.ready, *held, *pending.waiting), waiting=(), held=None)
