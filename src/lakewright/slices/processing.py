"""Processing of an entity's pending slices, one after the other, each under its lock.

Source: `processing-manifest.md`, "State"; `processing-strategies.md`, "Code Flow" and "Processing Time
Override".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.errors import (
    ItemLocked,
    LakewrightError,
    LateSliceError,
    LeaseHeld,
    OperatorError,
    SequenceConflict,
    StoreUnavailable,
)
from lakewright.errors.phrase import Phrase
from lakewright.lake.cluster import prepare_cluster
from lakewright.lake.commit import is_superseded
from lakewright.lake.observation import last_commit_number, observe_table
from lakewright.manifest.item import Item
from lakewright.manifest.verdict import Verdict
from lakewright.slices.application import applications_before
from lakewright.slices.attempt import SliceProcessor
from lakewright.slices.chain import counter_of
from lakewright.slices.discovery import slice_name
from lakewright.slices.fold import (
    FEWEST,
    FoldChoice,
    choose_fold,
    one_by_one_reason,
    one_by_one_text,
)
from lakewright.slices.lost_table import check_table_not_lost, find_other_writers
from lakewright.slices.pending_slices import Pending, choose_slices, find_pending, holding_error
from lakewright.slices.result import ProcessResult
from lakewright.slices.rewind.settlement import check_not_rewinding, settle_rewind
from lakewright.slices.time_check import check_processing_times
from lakewright.stores.heartbeat import Heartbeat
from lakewright.strategies.outdated import narrowed_columns, outdated_rows

if TYPE_CHECKING:
    from lakewright.manifest.claim import Claim
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity


POLL_SECONDS = 0.5
"""Seconds between two checks of a slice that another run is processing; processing takes some seconds."""


def process_pending(context: ProcessingContext, entity: Entity, *, slice: str | None = None) -> ProcessResult:
    """Process an entity's pending slices in order, or the named one; return the result.

    The first slice that fails ends the processing of its entity. A late slice that fails does not.

    Raises:
        UsageError: There is no such slice, one processing time is given for several slices, or it is no time.
        BackdatedError: The processing time is not later than all versions in the table; nothing was locked.
        LeaseHeld: The table is being rewound, and the run was not asked to wait.
        SpecError: The places of the entity are invalid, or not seen by the executors of a cluster.
        SparkUnavailable: The executors of a cluster can't do the work; nothing was locked.
        TargetError: Slices count as processed, but the table is gone; nothing was locked.
    """
    _settle(context, entity)
    pending = _wait_for_pending(context, entity)
    chosen = choose_slices(context, entity, pending, slice)
    warning = context.times(entity).check_readable()
    waiting = tuple(slice_name(item) for item in pending.waiting)
    other_writers = find_other_writers(context, entity)
    if chosen:
        before = check_table_not_lost(context, entity)
        processor = SliceProcessor(context, entity, late=pending.late)
        check_processing_times(context, entity, chosen, pending.late)
        prepare_cluster(context.lake)
        for note in narrowed_columns(before, entity):
            context.warn(Phrase(f"{entity.name}: ", note))
        result = _process(processor, chosen)
        state = observe_table(context.lake, processor.places.silver)
        outdated = (each.text for each in outdated_rows(state, entity, context.lake.settings))
        alone = () if processor.one_by_one is None else (one_by_one_text(processor.one_by_one),)
        result = replace(result, notes=(*result.notes, *alone, *outdated))
    else:
        result = ProcessResult()
    return replace(
        result,
        errors=result.errors or _holding_errors(context, entity, pending),
        waiting=(*result.waiting, *waiting),
        others=tuple(map(slice_name, pending.others)),
        waits_for=pending.waits_for,
        warnings=() if warning is None else (warning,),
        deviations=pending.deviations,
        other_writers=other_writers,
    )


def _holding_errors(
    context: ProcessingContext, entity: Entity, pending: Pending
) -> tuple[LakewrightError, ...]:
    """Return the error that says what holds the other slices back, if it can be read."""
    try:
        holding = holding_error(context, entity, pending)
    except StoreUnavailable as error:  # what was processed before is reported nevertheless
        return (error,)
    return () if holding is None else (holding,)


def _settle(context: ProcessingContext, entity: Entity) -> None:
    """End a rewind of the table that died; with the option `wait`, wait for one that is alive."""
    while True:
        try:
            settle_rewind(context, entity)
        except LeaseHeld:
            if not context.options.wait or context.is_stopping():
                raise
            context.sleep(POLL_SECONDS)
        else:
            return


def _wait_for_pending(context: ProcessingContext, entity: Entity) -> Pending:
    """Return the pending slices; with the option `wait`, once no living run holds one of them."""
    while True:
        pending = find_pending(context, entity)
        lock = None if pending.held is None else context.ledger.lock(pending.held)
        is_held = lock is not None and not lock.is_stale
        if not (context.options.wait and is_held) or context.is_stopping():
            return pending
        context.sleep(POLL_SECONDS)


def _process(processor: SliceProcessor, items: Sequence[Item]) -> ProcessResult:
    """Process items in order until one is held or fails."""
    context, result, is_outdated = processor.context, ProcessResult(), False
    if len(items) >= FEWEST:
        processor.one_by_one = one_by_one_reason(context, processor.entity)
    with Heartbeat(context.ledger.store, context.lease) as heartbeat:
        while items:
            if context.is_stopping():
                return replace(result, waiting=_names(items), is_stopped=True)
            try:
                items = _as_recorded(context, items) if is_outdated else items
                choice = _choice(processor, items)
                claims, passed = _claims(processor, items, choice, heartbeat)
            except LakewrightError as error:
                return replace(result, errors=(*result.errors, error), waiting=_names(items))
            items, is_outdated = items[passed:], choice.count > 1
            if not claims:
                continue
            more = processor.process(claims, heartbeat)
            result = result.followed_by(more)
            items = items[len(more.slices) + len(more.failed) + len(more.unrecorded) :]
            if more.errors and not isinstance(more.errors[-1], LateSliceError):
                return replace(result, waiting=_names(items))
    return result


def _names(items: Sequence[Item]) -> tuple[str, ...]:
    return tuple(map(slice_name, items))


def _as_recorded(context: ProcessingContext, items: Sequence[Item]) -> list[Item]:
    """Return the items as they are now: those that were claimed for a fold have a number since."""
    found = context.ledger.store.read([item.item_id for item in items])
    return [found.get(item.item_id, item) for item in items]


def _choice(processor: SliceProcessor, items: Sequence[Item]) -> FoldChoice:
    """Return how many of the next items one commit is to hold."""
    if len(items) < FEWEST or processor.one_by_one is not None:
        return FoldChoice(1)
    return choose_fold(processor.context, processor.entity, items, late=processor.late)


def _claims(
    processor: SliceProcessor, items: Sequence[Item], choice: FoldChoice, heartbeat: Heartbeat
) -> tuple[list[Claim], int]:
    """Claim the next items for one commit; return the claims, and how many items another run has processed.

    Raises:
        OperatorError, StoreUnavailable: The first one can't be claimed.
    """
    claims: list[Claim] = []
    passed = 0
    try:
        for item in items[: choice.count]:
            shared = claims[0].token if claims else choice.number
            try:
                claim = _claim(processor, item, shared=shared, may_wait=not claims)
            except (OperatorError, StoreUnavailable):
                if not claims:
                    raise
                break
            if claim is None:
                if claims:
                    break
                passed += 1  # another run has processed it meanwhile
                continue
            heartbeat.keep(claim.lease)
            if claims and claim.token != claims[0].token:
                processor.release([claim], heartbeat, "it is processed after the slices before it")
                break
            claims.append(claim)
    except BaseException:
        processor.release(claims, heartbeat, "the run was interrupted")
        raise
    return claims, passed


def _claim(
    processor: SliceProcessor, item: Item, *, shared: int | None = None, may_wait: bool = True
) -> Claim | None:
    """Lock an item and return its claim, or None if another run has processed it meanwhile.

    Args:
        processor: Processes the entity's slices.
        item: The item.
        shared: The number of the commit of several slices that the item is part of.
        may_wait: Whether the option `wait` holds.
    """
    context, silver = processor.context, processor.places.silver
    floor = last_commit_number(context.lake, silver, processor.app_id) or 0
    number = item.tokens.get(context.application.key)
    # A number that the table has passed without this item's commit can never be committed any more.
    is_refused = number is not None and is_superseded(
        context.lake, silver, processor.app_id, number, item.item_id
    )
    while True:
        try:
            claim = context.ledger.acquire(
                item.item_id,
                context.application,
                context.holder,
                duration=context.lease,
                token_counter=counter_of(silver),
                token_floor=floor,
                refused=number if is_refused else None,
                shared=shared,
                takeover=context.takeover,
                after=applications_before(processor.entity),
            )
        except SequenceConflict as conflict:
            if conflict.details.get("verdict") in {Verdict.PROCESSED, Verdict.SKIPPED}:
                return None
            raise
        except ItemLocked:
            if not (context.options.wait and may_wait) or context.is_stopping():
                raise
            context.sleep(POLL_SECONDS)
        else:
            return _unless_rewinding(processor, claim)


def _unless_rewinding(processor: SliceProcessor, claim: Claim) -> Claim:
    """Return a claim, unless a rewind of the table began before it: one that begins later sees the lock."""
    try:
        check_not_rewinding(processor.context, processor.entity)
    except LeaseHeld as held:
        processor.context.ledger.give_back(claim, f"not done: {held.message}")
        raise
    return claim
