"""Processing an entity's pending slices, one after the other, each under its lock.

Source: `processing-manifest.md`, "State"; `processing-strategies.md`, "Code Flow" and
"Processing Time Override".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from lakewright.errors import (
    BackdatedError,
    ItemLocked,
    LakewrightError,
    LateSliceError,
    OperatorError,
    SequenceConflict,
    StoreUnavailable,
    UsageError,
)
from lakewright.lake.commit import is_superseded
from lakewright.lake.observation import last_commit_number, latest_instant_since, observe_table
from lakewright.manifest.item import Item, Verdict
from lakewright.slices.attempt import Attempts
from lakewright.slices.bench import Bench, ProcessingOptions
from lakewright.slices.look import choose, held_error, look_for_slices
from lakewright.slices.pending import Pending, slice_name
from lakewright.slices.recover_from_log import counter_of, has_landed
from lakewright.slices.result import ProcessResult
from lakewright.slices.times import parse_processing_time
from lakewright.spec.models.entity import Strategy
from lakewright.stores.heartbeat import Heartbeat
from lakewright.strategies.adopting.columns import is_adoptable
from lakewright.transform.system import SystemColumns

if TYPE_CHECKING:
    from lakewright.manifest.claim import Claim
    from lakewright.spec.models.entity import Entity

__all__ = ["Bench", "ProcessingOptions", "held_error", "look_for_slices", "process_pending"]

PAUSE = 0.5
"""Seconds between two looks at a slice that another run processes."""


def process_pending(bench: Bench, entity: Entity, *, slice: str | None = None) -> ProcessResult:
    """Return what processing an entity's pending slices, or one of them, came to.

    Slices are processed in order. One that fails stops its entity here, but for a late one, which holds
    nothing back.

    Raises:
        UsageError: There is no such slice, or one processing time is given for several.
        BackdatedError: The processing time isn't later than all that the table holds; nothing was locked.
        SpecError: The entity's places are wrong.
    """
    pending = _look(bench, entity)
    chosen = choose(bench, entity, pending, slice)
    given, warnings = _given_time(bench)
    waiting = tuple(slice_name(item) for item in pending.waiting)
    if chosen:
        attempts = Attempts(
            bench, entity, bench.options.strategy or entity.strategy, given=given, late=pending.late
        )
        _refuse_times(attempts, chosen)
        result = _process(attempts, chosen)
    else:
        result = ProcessResult()
    held = () if pending.held is None or result.errors else (held_error(bench, pending.held),)
    return replace(
        result, errors=(*result.errors, *held), waiting=(*result.waiting, *waiting), warnings=warnings
    )


def _look(bench: Bench, entity: Entity) -> Pending:
    """What is to be done about the slices; where the caller waits, once no living run holds any back."""
    while True:
        pending, _ = look_for_slices(bench, entity)
        lock = None if pending.held is None else bench.ledger.lock(pending.held)
        is_held = lock is not None and not lock.is_stale
        if not (bench.options.wait and is_held) or bench.is_stopping():
            return pending
        bench.sleep(PAUSE)


def _refuse_times(attempts: Attempts, chosen: Sequence[Item]) -> None:
    """Refuse a time for versions that isn't later than every one's beginning and end.

    Where the first slice's commit has landed already, its versions don't count against it.
    """
    if attempts.strategy is not Strategy.HISTORIC:
        return
    if attempts.given is not None and len(chosen) > 1:
        raise UsageError(
            f"one processing time is given for {len(chosen)} pending slices of {attempts.entity.name}",
            remedy="Name the slice, or process them without --processing-time.",
        )
    bench, silver = attempts.bench, attempts.places.silver
    if bench.options.permissions.allow_backdated or has_landed(
        bench.lake, silver, chosen[0], bench.application
    ):
        return
    if is_adoptable(attempts.entity, observe_table(bench.lake, silver)):
        return
    at = attempts.given or bench.clock()
    system = SystemColumns(bench.lake.settings.systemfield_prefix, attempts.entity.destination)
    newest = latest_instant_since(bench.lake, silver, (system.valid_from, system.valid_to), at)
    if newest is not None:
        raise BackdatedError(
            f"the processing time {at.isoformat()} isn't later than {newest.isoformat()}, "
            f"up to which the versions in {silver} go",
            details={"processing_time": at.isoformat(), "newest": newest.isoformat()},
        )


def _process(attempts: Attempts, items: Sequence[Item]) -> ProcessResult:
    """Process items in order until one is held or fails."""
    bench = attempts.bench
    result = ProcessResult()
    with Heartbeat(bench.ledger.store, bench.lease) as heartbeat:
        for position, item in enumerate(items):
            rest = tuple(slice_name(other) for other in items[position:])
            if bench.is_stopping():
                return replace(result, waiting=rest, is_stopped=True)
            try:
                claim = _claim(attempts, item)
            except (OperatorError, StoreUnavailable) as error:
                return replace(result, errors=(*result.errors, error), waiting=rest)
            if claim is not None:
                result = _with_slice(result, attempts, claim, heartbeat)
            if result.errors and not isinstance(result.errors[-1], LateSliceError):
                return replace(result, waiting=rest[1:])
    return result


def _with_slice(
    result: ProcessResult, attempts: Attempts, claim: Claim, heartbeat: Heartbeat
) -> ProcessResult:
    """Process one slice, and add what came of it to the result."""
    try:
        return replace(result, slices=(*result.slices, attempts.process(claim, heartbeat)))
    except LakewrightError as error:
        name = slice_name(claim.item)
        return replace(result, failed=(*result.failed, name), errors=(*result.errors, error))


def _claim(attempts: Attempts, item: Item) -> Claim | None:
    """The lock on an item, or None where another run has done it meanwhile."""
    bench, silver = attempts.bench, attempts.places.silver
    floor = last_commit_number(bench.lake, silver, attempts.app_id) or 0
    number = item.tokens.get(bench.application.key)
    is_refused = number is not None and is_superseded(
        bench.lake, silver, attempts.app_id, number, item.item_id
    )
    while True:
        try:
            return bench.ledger.acquire(
                item.item_id,
                bench.application,
                bench.holder,
                duration=bench.lease,
                token_counter=counter_of(silver),
                token_floor=floor,
                refused=number if is_refused else None,
                takeover=bench.takeover,
            )
        except SequenceConflict as conflict:
            if conflict.details.get("verdict") in {Verdict.PROCESSED, Verdict.SKIPPED}:
                return None
            raise
        except ItemLocked:
            if not bench.options.wait or bench.is_stopping():
                raise
            bench.sleep(PAUSE)


def _given_time(bench: Bench) -> tuple[datetime | None, tuple[str, ...]]:
    text = bench.options.processing_time
    if text is None:
        return None, ()
    found = parse_processing_time(text, bench.lake.settings.zone)
    if found is not None:
        return found, ()
    warning = f"the processing time {text!r} isn't ISO 8601; the current time is used"
    bench.warn(warning)
    return None, (warning,)
