"""The work of an entity target, with one function for each phase."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lakewright.errors import (
    ItemFailed,
    LakewrightError,
    LeaseHeld,
    OperatorError,
    TargetError,
    VerificationError,
)
from lakewright.lake.table import drop_table, set_properties, truncate_table
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.slices.adopt import adopt_table
from lakewright.slices.discover import slice_name
from lakewright.slices.pending import find_pending, requeue_processed
from lakewright.slices.process import process_pending
from lakewright.slices.result import ProcessResult
from lakewright.slices.validation import fail_invalid_slices
from lakewright.targets.entity.invariants import broken_invariants
from lakewright.targets.entity.maintenance import maintain
from lakewright.targets.entity.observation import property_changes
from lakewright.targets.entity.stale_locks import stale_locks, with_stale_locks
from lakewright.targets.entity.work import EntityWork

__all__ = ["PHASES"]

_COUNTS = (
    "records_in_slice",
    "inserted",
    "updated",
    "unchanged",
    "deleted",
    "changed",
    "closed",
    "inferred_deletes",
)
_MOST_NAMED = 5


def _validate(work: EntityWork) -> Outcome:
    """Record as failed the slices that BUILD could not process."""
    processing = work.processing
    pending, slices = find_pending(processing, work.entity)
    failed = fail_invalid_slices(processing, work.entity, pending, slices)
    metrics = {"slices_ready": len(pending.ready) - len(failed), "slices_waiting": len(pending.waiting)}
    if not failed:
        return Outcome(metrics=metrics)
    return Outcome(
        Status.SUCCESS_WITH_ERRORS,
        metrics={**metrics, "slices_failed": len(failed)},
        reasons=tuple(error.message for error in failed),
        error=failed[0].as_fault(),
    )


def _create(work: EntityWork) -> Outcome:
    """Set the declared table properties, or adopt a table that another program wrote."""
    state = work.table_state()
    if not state.exists:
        return Outcome(Status.SKIPPED, reasons=("the first slice creates the table",))
    if work.is_adoptable(state):
        return _adopt(work)
    changes = property_changes(work.entity, state)
    if changes:
        with work.silver_lease():
            set_properties(work.lake.new_session(), work.silver, work.entity.settings.table_properties)
    return Outcome(reasons=tuple(change.description for change in changes))


def _adopt(work: EntityWork) -> Outcome:
    processing = work.processing
    pending, _ = find_pending(processing, work.entity)
    if not pending.ready:
        return Outcome(Status.SKIPPED, reasons=("the table is adopted with the first slice",))
    with work.silver_lease():
        counts = adopt_table(processing, work.entity, pending.ready[0])
    return Outcome(metrics=dict(counts), reasons=("the table was adopted",))


def _build(work: EntityWork) -> Outcome:
    """Process the slices that are ready, then maintain the table."""
    _check_table_not_lost(work)
    processing = work.processing
    # Before processing, which takes stale locks over.
    stale = stale_locks(processing, work.entity)
    return with_stale_locks(_process(work), stale)


def _process(work: EntityWork) -> Outcome:
    result = process_pending(work.processing, work.entity)
    if result.error is not None:
        return Outcome(
            _failed_status(result.error, work.context.run_id),
            metrics=_metrics(result),
            reasons=tuple(error.message for error in result.errors),
            error=result.error.as_fault(),
        )
    if result.is_stopped:
        return Outcome(Status.ABORTED, metrics=_metrics(result), reasons=("the run was asked to stop",))
    if not result.slices:
        return Outcome(Status.SKIPPED, reasons=("every slice has been processed", *result.warnings))
    return Outcome(metrics={**_metrics(result), **_maintain(work)}, reasons=result.warnings)


def _check_table_not_lost(work: EntityWork) -> None:
    """Raise `TargetError` if slices count as processed but the silver table does not exist."""
    processed = work.first_processed()
    if processed is not None and not work.table_state().exists:
        raise TargetError(
            f"{work.label}: the manifest counts slices such as {slice_name(processed)} as processed into "
            f"{work.silver}, but no table exists there",
            remedy="Restore the table, or run DESTROY and then BUILD to start over.",
        )


def _failed_status(error: LakewrightError, run_id: str) -> Status:
    """Return FAILED for a failure of this run, BLOCKED for a lock or failure that another run left."""
    if not isinstance(error, OperatorError):
        return Status.FAILED
    is_own = isinstance(error, ItemFailed) and error.details.get("run_id") == run_id
    return Status.FAILED if is_own else Status.BLOCKED


def _metrics(result: ProcessResult) -> dict[str, Any]:
    """Return each slice's counts, and their sums."""
    each = [done.as_json() for done in result.slices]
    sums = {name: sum(counts[name] for counts in each) for name in _COUNTS}
    return {**sums, "slices": each}


def _maintain(work: EntityWork) -> dict[str, Any]:
    """Return what maintenance did, as a metric; its errors do not fail the target: slices are processed."""
    context, name = work.context, work.entity.name
    if not work.entity.settings.maintenance.enabled or context.is_stopping():
        return {}
    try:
        maintenance = maintain(work.lake, context.leases, work.entity)
    except LeaseHeld as held:
        context.warn(f"{name}: not maintained: {held.message}")
        return {}
    except Exception as error:  # maintenance only makes later reads faster
        if context.is_cut_off():
            raise
        context.warn(f"{name}: maintenance failed; the next run tries again: {error}")
        return {}
    return {"maintenance": maintenance.as_json()} if maintenance.is_done else {}


def _verify(work: EntityWork) -> Outcome:
    """Check that the table exists and its invariants hold."""
    if not work.table_state().exists:
        raise VerificationError(
            f"{work.label}: there is no table at {work.silver}",
            remedy="The first slice creates it. Check that a slice is in bronze, and run BUILD.",
        )
    broken = broken_invariants(work.context.workspace, work.entity)
    if broken:
        raise VerificationError(
            f"{work.label}: {'; '.join(broken)}",
            remedy=f"Run `lakewright doctor {work.entity.name}` to see since when, and how to repair it.",
        )
    return Outcome()


def _truncate(work: EntityWork) -> Outcome:
    """Empty the table, and make the manifest forget the slices."""
    with work.silver_lease():
        if work.table_state().exists:
            truncate_table(work.lake, work.silver)
        return _forget_slices(work, "its table was emptied")


def _destroy(work: EntityWork) -> Outcome:
    """Drop the table, and make the manifest forget the slices."""
    with work.silver_lease():
        drop_table(work.lake, work.silver)
        return _forget_slices(work, "its table was removed")


def _forget_slices(work: EntityWork, reason: str) -> Outcome:
    kept = requeue_processed(work.processing, work.entity, reason)
    if not kept:
        return Outcome()
    named = ", ".join(kept[:_MOST_NAMED])
    return Outcome(reasons=(f"stay processed, because others have processed them too: {named}",))


PHASES: Mapping[Phase, Callable[[EntityWork], Outcome]] = {
    Phase.VALIDATE: _validate,
    Phase.CREATE: _create,
    Phase.BUILD: _build,
    Phase.VERIFY: _verify,
    Phase.TRUNCATE: _truncate,
    Phase.DESTROY: _destroy,
}
"""The work of an entity target in each phase."""
