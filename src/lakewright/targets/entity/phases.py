"""The work of an entity target, with one function for each phase. VERIFY checks invariants of the table.

Source: `processing-strategies.md`, "Merge Strategy" (one row for each key) and "Historic Strategy" (one
current version for each key).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from lakewright.due import plan as due
from lakewright.errors import (
    Fault,
    LakewrightError,
    VerificationError,
)
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.delta_log import VECTORS
from lakewright.lake.table import drop_feature, drop_table, set_comments, set_properties, truncate_table
from lakewright.manifest.lock import FAILED_ITEMS, STALE_LOCKS, Lock
from lakewright.manifest.record import format_instant
from lakewright.manifest.verdict import Verdict
from lakewright.plan.dirtiness import all_processed, change_reason
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code, error_reason, note
from lakewright.plan.status import Status
from lakewright.slices.lost_table import check_table_not_lost
from lakewright.slices.past_versions import adopt_table
from lakewright.slices.pending_slices import find_pending, requeue_processed
from lakewright.slices.processing import process_pending
from lakewright.slices.result import ProcessResult, named_fault
from lakewright.slices.validation import fail_invalid_slices
from lakewright.spec.reason import Reason, reasons_text
from lakewright.spec.words import first_of
from lakewright.targets.entity.maintenance import maintain_after_slices
from lakewright.targets.entity.observation import (
    comment_changes,
    feature_changes,
    new_comments,
    observe_entity,
    property_changes,
)
from lakewright.targets.entity.table_rules import broken_invariants
from lakewright.targets.entity.work import EntityWork

_COUNTS = (
    "records_in_slice",
    "inserted",
    "updated",
    "unchanged",
    "deleted",
    "changed",
    "closed",
    "inferred_deletes",
    "superseded",
    "outdated",
    "quarantined",
)
_MOST_NAMED = 5


def _validate(work: EntityWork) -> Outcome:
    """Record as failed the slices that BUILD could not process."""
    processing = work.processing
    pending = find_pending(processing, work.entity)
    failed = fail_invalid_slices(processing, work.entity, pending)
    metrics = {"slices_ready": len(pending.ready) - len(failed), "slices_waiting": len(pending.waiting)}
    if not failed:
        return Outcome(metrics=metrics)
    return Outcome(
        Status.SUCCESS_WITH_ERRORS,
        metrics={**metrics, "slices_failed": len(failed)},
        reasons=tuple(error_reason(named_fault(error).message) for error in failed),
        error=_as_one_fault(failed),
    )


def _as_one_fault(errors: Sequence[LakewrightError]) -> Fault:
    """Return the errors of slices as one fault, which names each slice and has the remedy of each."""
    fault = reduce(Fault.and_also, map(named_fault, errors))
    items = [item for error in errors for item in error.details.get(FAILED_ITEMS, ())]
    return replace(fault, details={**fault.details, FAILED_ITEMS: items}) if items else fault


def _create(work: EntityWork) -> Outcome:
    """Set the declared properties and comments, or adopt a table that another program wrote."""
    state = work.table_state()
    if not state.exists:
        return Outcome(Status.SKIPPED, reasons=(Reason(Code.MADE_BY_SLICE),))
    if work.is_adoptable(state):
        return _adopt(work)
    properties, comments = property_changes(work.entity, state), new_comments(work.entity, state)
    features = feature_changes(work.entity, state)
    changes = (*properties, *features, *comment_changes(work.entity, state))
    if changes:
        with work.silver_lease():
            if properties:
                set_properties(work.lake, work.silver, work.entity.settings.silver_properties)
            if features:
                drop_feature(work.lake, work.silver, VECTORS)
            set_comments(work.lake, work.silver, comments)
    return Outcome(reasons=tuple(map(change_reason, changes)))


def _adopt(work: EntityWork) -> Outcome:
    processing = work.processing
    pending = find_pending(processing, work.entity)
    if not pending.ready:
        return Outcome(Status.SKIPPED, reasons=(Reason(Code.ADOPTED_BY_SLICE),))
    with work.silver_lease():
        counts = adopt_table(processing, work.entity, pending.ready[0])
    return Outcome(metrics=dict(counts), reasons=(Reason(Code.ADOPTED),))


def _build(work: EntityWork) -> Outcome:
    """Process the slices that are ready, then maintain the table."""
    processing = work.processing
    check_table_not_lost(processing, work.entity)
    # Before processing, which takes stale locks over.
    stale = _stale_locks(work)
    return _with_stale_locks(_process(work), stale)


def _stale_locks(work: EntityWork) -> tuple[Lock, ...]:
    """Return the locks on an entity's slices whose holder has ended or whose lease has expired."""
    return tuple(work.context.ledger.stale_locks(work.chain.items(Verdict.LOCKED)))


def _with_stale_locks(outcome: Outcome, found: Sequence[Lock]) -> Outcome:
    """Return the outcome of BUILD with the stale locks that it found added to metrics and reasons."""
    if not found:
        return outcome
    metrics = {**outcome.metrics, STALE_LOCKS: [lock.as_json() for lock in found]}
    return replace(outcome, metrics=metrics, reasons=(*outcome.reasons, *map(_stale_reason, found)))


def _stale_reason(lock: Lock) -> Reason:
    since, holder = format_instant(lock.processing.since), str(lock.holder)
    params = {"item": lock.item_id, "holder": holder, "since": since, "why": lock.stale_reason}
    return Reason(Code.STALE_LOCK, params)


def _process(work: EntityWork) -> Outcome:
    result = process_pending(work.processing, work.entity)
    metrics, notes, error = _metrics(result), tuple(map(note, result.notes)), result.warning
    if result.errors:
        reasons = (*_failed_slices(result), *(error_reason(fault.message) for fault in result.faults), *notes)
        error = _as_one_fault(result.errors).and_also(result.warning)
        return Outcome(result.status, metrics=metrics, reasons=reasons, error=error)
    if result.is_stopped:
        return Outcome(result.status, metrics=metrics, reasons=(Reason(Code.STOPPED), *notes))
    noticed = map(note, (*result.warnings, *result.deviations.noticed(due.Code.SKIPPED_CHANGED)))
    if result.slices:
        metrics |= _maintain(work)
        reasons = (*result.waits_for, *notes, *noticed)
        return Outcome(result.status, metrics=metrics, reasons=reasons, error=error)
    idle = result.deviations.idle_reason(work.selection.takes, str(work.selection))
    waits = result.waits_for or (idle or all_processed(is_part=bool(result.others)),)
    reasons = (*waits, *noticed)
    return Outcome(result.status, reasons=reasons, error=error)


def _failed_slices(result: ProcessResult) -> Iterator[Reason]:
    """Yield which slices failed, how many wait for them, and which ends could not be recorded."""
    if result.failed:
        code = Code.FAILED_BEFORE_OTHERS if result.waiting else Code.FAILED
        yield Reason(code, {"slices": result.failed, "waiting": len(result.waiting)})
    if result.unsettled is not None:
        yield result.unsettled


def _metrics(result: ProcessResult) -> dict[str, Any]:
    """Return each slice's counts, and their sums."""
    each = [done.as_json() for done in result.slices]
    sums = {name: sum(counts[name] for counts in each) for name in _COUNTS}
    return {**sums, "slices": each}


def _maintain(work: EntityWork) -> dict[str, Any]:
    """Return what maintenance did, or is due, as a metric."""
    found = maintain_after_slices(work.context, work.entity)
    return {"maintenance": found.as_json()} if found is not None and found.is_due else {}


def _no_table_error(work: EntityWork) -> VerificationError:
    """Return the error that says why no slice has created the table; nothing is recorded."""
    found = observe_entity(work)
    fault = found.warning if found.hold is None else found.hold.error
    if found.pending:
        cause = f"not processed yet: {first_of(found.pending, _MOST_NAMED)}"
    else:
        said = None if fault is None else fault.message
        waits = found.waits_for or ((found.idle,) if found.idle else ())
        cause = said or reasons_text(waits) or "no slice has been processed"
    return VerificationError(
        f"{work.label}: there is no table at {work.silver}: {cause}",
        remedy=Phrase(Command("plan"), " shows what is due, and what it waits for."),
    )


def _verify(work: EntityWork) -> Outcome:
    """Check that the table exists and its invariants hold."""
    if not work.table_state().exists:
        raise _no_table_error(work)
    broken = broken_invariants(work.context.workspace, work.entity)
    if broken:
        raise VerificationError(
            f"{work.label}: {'; '.join(broken)}",
            remedy=Phrase(
                "Run ", Command("doctor", work.entity.called), " to see since when, and how to repair it."
            ),
        )
    return Outcome()


def _truncate(work: EntityWork) -> Outcome:
    """Empty the table, and make the manifest forget the slices."""
    with work.silver_lease():
        if work.table_state().exists:
            truncate_table(work.lake, work.silver)
        return _forget_slices(work, f"its table was emptied by {work.context.leases.holder}")


def _destroy(work: EntityWork) -> Outcome:
    """Drop the table, and make the manifest forget the slices."""
    with work.silver_lease():
        drop_table(work.lake, work.silver)
        return _forget_slices(work, f"its table was removed by {work.context.leases.holder}")


def _forget_slices(work: EntityWork, reason: str) -> Outcome:
    kept = requeue_processed(work.processing, work.entity, reason)
    if not kept:
        return Outcome()
    return Outcome(reasons=(Reason(Code.KEPT, {"slices": kept}),))


PHASES: Mapping[Phase, Callable[[EntityWork], Outcome]] = {
    Phase.VALIDATE: _validate,
    Phase.CREATE: _create,
    Phase.BUILD: _build,
    Phase.VERIFY: _verify,
    Phase.TRUNCATE: _truncate,
    Phase.DESTROY: _destroy,
}
"""The work of an entity target in each phase."""
