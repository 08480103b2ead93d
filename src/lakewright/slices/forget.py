"""Letting an entity's slices be processed again, because their rows are removed from silver.

Source: `lifecycles-and-phases.md`, "Execution Phases" (TRUNCATE, DESTROY); that the manifest follows is
Lakewright's own: what is removed can be built again from bronze.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.manifest.item import Verdict
from lakewright.manifest.store import Query
from lakewright.slices.discover import item_id
from lakewright.slices.pending import slice_name

if TYPE_CHECKING:
    from lakewright.slices.process import Bench
    from lakewright.spec.models.entity import Entity

__all__ = ["forget"]


def forget(bench: Bench, entity: Entity, reason: str) -> tuple[str, ...]:
    """Requeue every slice that the application has processed, and reset its watermarks; both tell the reason.

    Returns:
        Names of slices that stay processed, because another application has processed them too: their
        next revision would be processed by that one again.

    Raises:
        ItemLocked: One of them is being processed; those before it are requeued.
    """
    kept: list[str] = []
    prefix = item_id(entity.places(bench.lake.settings).bronze) + "/"
    query = Query(bench.application, frozenset({Verdict.PROCESSED}), prefix=prefix)
    for item in list(bench.ledger.store.select(query)):
        others = [mark for mark in item.processed if not mark.application.covers(bench.application)]
        if others:
            kept.append(slice_name(item))
        else:
            # Its files may be removed and land again: whatever is there then is the slice.
            bench.ledger.requeue(item.item_id, reason, fingerprint={})
    for column in bench.ledger.watermarks.last(bench.application):
        bench.ledger.set_watermark(bench.application, column, None, reason)
    return tuple(kept)
