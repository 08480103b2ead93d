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
    OperatorError,
    SequenceConflict,
    StoreUnavailable,
)
from lakewright.lake.commit import is_superseded
from lakewright.lake.observation import last_commit_number
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.lock import recovery_advice
from lakewright.slices.application import applications_before
from lakewright.slices.attempt import SliceProcessor
from lakewright.slices.discover import slice_name
from lakewright.slices.pending import Pending, choose_slices, find_pending, holding_error
from lakewright.slices.processing_time import ProcessingTimes
from lakewright.slices.recover_from_log import counter_of
from lakewright.slices.result import ProcessResult, SliceReport
from lakewright.slices.time_check import check_processing_times
from lakewright.stores.heartbeat import Heartbeat

if TYPE_CHECKING:
    from lakewright.manifest.claim import Claim
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity

__all__ = ["process_pending"]

POLL_SECONDS = 0.5
"""Seconds between two checks of a slice that another run is processing; processing takes some seconds."""


def process_pending(context: ProcessingContext, entity: Entity, *, slice: str | None = None) -> ProcessResult:
    """Process an entity's pending slices in order, or the named one; return the result.

    The first slice that fails ends the processing of its entity. A late slice that fails does not.

    Raises:
        UsageError: There is no such slice, one processing time is given for several slices, or it is no time.
        BackdatedError: The processing time is not later than all versions in the table; nothing was locked.
        SpecError: The places of the entity are invalid.
    """
    pending = _wait_for_pending(context, entity)
    chosen = choose_slices(context, entity, pending, slice)
    times = ProcessingTimes.of(context.options, context.lake.settings.zone, context.warn)
    warning = times.check_readable()
    waiting = tuple(slice_name(item) for item in pending.waiting)
    if chosen:
        processor = SliceProcessor(context, entity, times=times, late=pending.late)
        check_processing_times(context, entity, chosen, times, pending.late)
        result = _process(processor, chosen)
    else:
        result = ProcessResult()
    holding = None if result.errors else holding_error(context, entity, pending)
    return replace(
        result,
        errors=(*result.errors, *(() if holding is None else (holding,))),
        waiting=(*result.waiting, *waiting),
        others=tuple(map(slice_name, pending.others)),
        waits_for=pending.waits_for,
        warnings=() if warning is None else (warning,),
        deviations=pending.deviations,
    )


def _wait_for_pending(context: ProcessingContext, entity: Entity) -> Pending:
    """Return the pending slices; with the option `wait`, once no living run holds one of them."""
    while True:
        pending, _ = find_pending(context, entity)
        lock = None if pending.held is None else context.ledger.lock(pending.held)
        is_held = lock is not None and not lock.is_stale
        if not (context.options.wait and is_held) or context.is_stopping():
            return pending
        context.sleep(POLL_SECONDS)


def _process(processor: SliceProcessor, items: Sequence[Item]) -> ProcessResult:
    """Process items in order until one is held or fails."""
    context = processor.context
    result = ProcessResult()
    with Heartbeat(context.ledger.store, context.lease) as heartbeat:
        for position, item in enumerate(items):
            rest = tuple(slice_name(other) for other in items[position:])
            if context.is_stopping():
                return replace(result, waiting=rest, is_stopped=True)
            try:
                claim = _claim(processor, item)
            except (OperatorError, StoreUnavailable) as error:
                return replace(result, errors=(*result.errors, error), waiting=rest)
            if claim is not None:
                result = _with_slice(result, processor, claim, heartbeat)
            if result.errors and not isinstance(result.errors[-1], LateSliceError):
                is_failed = slice_name(item) in result.failed
                return replace(result, waiting=rest[1:] if is_failed else rest)
    return result


def _with_slice(
    result: ProcessResult, processor: SliceProcessor, claim: Claim, heartbeat: Heartbeat
) -> ProcessResult:
    """Process one slice, and add its result or error to the result."""
    name, report = slice_name(claim.item), processor.context.report
    about = SliceReport(processor.entity.name, name, claim.item.item_id)
    try:
        done = processor.process(claim, heartbeat)
    except LakewrightError as error:
        is_failed = processor.is_at_fault(error)
        report(replace(about, error=error, is_failed=is_failed))
        if not is_failed:
            return replace(result, errors=(*result.errors, error))
        item = processor.context.ledger.item(claim.item.item_id)
        if item.failed is not None:
            error.remedy = recovery_advice(item, f"{processor.entity.name}/{name}")
        return replace(result, failed=(*result.failed, name), errors=(*result.errors, error))
    report(replace(about, result=done))
    return replace(result, slices=(*result.slices, done))


def _claim(processor: SliceProcessor, item: Item) -> Claim | None:
    """Lock an item and return its claim, or None if another run has processed it meanwhile."""
    context, silver = processor.context, processor.places.silver
    floor = last_commit_number(context.lake, silver, processor.app_id) or 0
    number = item.tokens.get(context.application.key)
    # A number that the table has passed without this item's commit can never be committed any more.
    is_refused = number is not None and is_superseded(
        context.lake, silver, processor.app_id, number, item.item_id
    )
    while True:
        try:
            return context.ledger.acquire(
                item.item_id,
                context.application,
                context.holder,
                duration=context.lease,
                token_counter=counter_of(silver),
                token_floor=floor,
                refused=number if is_refused else None,
                takeover=context.takeover,
                after=applications_before(processor.entity),
            )
        except SequenceConflict as conflict:
            if conflict.details.get("verdict") in {Verdict.PROCESSED, Verdict.SKIPPED}:
                return None
            raise
        except ItemLocked:
            if not context.options.wait or context.is_stopping():
                raise
            context.sleep(POLL_SECONDS)
