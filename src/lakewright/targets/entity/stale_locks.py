"""Stale locks on an entity's slices, which a run reports to operators.

Source: `processing-manifest.md`, "State" (Processing). That a lock can be stale is Lakewright's own rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.manifest.item import Verdict
from lakewright.manifest.lock import Lock
from lakewright.manifest.record import format_instant
from lakewright.manifest.store import Query
from lakewright.plan.outcome import Outcome
from lakewright.slices.discover import item_id

if TYPE_CHECKING:
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity

__all__ = ["STALE_LOCKS", "stale_locks", "with_stale_locks"]

STALE_LOCKS = "stale_locks"
"""The metric that lists the locks; hooks raise an alert if a target has it."""


def stale_locks(processing: ProcessingContext, entity: Entity) -> tuple[Lock, ...]:
    """Return the locks on an entity's slices whose holder has ended or whose lease has expired."""
    prefix = item_id(entity.places(processing.lake.settings).bronze) + "/"
    locked = Query(verdicts=frozenset({Verdict.LOCKED}), prefix=prefix)
    return tuple(processing.ledger.stale_locks(processing.ledger.store.select(locked)))


def with_stale_locks(outcome: Outcome, found: Sequence[Lock]) -> Outcome:
    """Return the outcome of BUILD with the stale locks that it found added to metrics and reasons."""
    if not found:
        return outcome
    reasons = (
        f"found {lock.item_id} locked by {lock.holder} since {format_instant(lock.processing.since)}: "
        f"{lock.stale_reason}"
        for lock in found
    )
    metrics = {**outcome.metrics, STALE_LOCKS: [lock.as_json() for lock in found]}
    return replace(outcome, metrics=metrics, reasons=(*outcome.reasons, *reasons))
