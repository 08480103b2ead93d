"""What the remedy of a refused undo says about slices that bronze does not hold as they were processed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from lakewright.manifest.item import Verdict
from lakewright.manifest.lock import command
from lakewright.manifest.store import Query
from lakewright.slices.discover import called_name, item_id, slice_name
from lakewright.slices.time_check import requeueing_undo
from lakewright.spec.suggestions import nearest

if TYPE_CHECKING:
    from lakewright.slices.applied import AppliedSlice
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.rewind.undo_plan import UndoPlan
    from lakewright.spec.models.entity import Entity

__all__ = ["undoable", "with_requeue", "without_slice"]


def undoable(context: ProcessingContext, bronze: str, name: str) -> str:
    """Return the remedy for a slice that is not in the table, with the name that is probably meant."""
    prefix = item_id(f"{bronze}/")
    query = Query(context.application, frozenset({Verdict.PROCESSED}), prefix=prefix)
    near = nearest(name, [slice_name(item) for item in context.ledger.store.select(query)])
    meant = "" if near is None else f"Did you mean {near!r}? "
    return f"{meant}Only a processed slice can be undone. `lakewright manifest ls` lists the slices."


def without_slice(entity: Entity, plan: UndoPlan, last: AppliedSlice) -> str:
    """Return how to do without the undone slice, as the end of a remedy, if no other is at fault."""
    if last.item_id != plan.item.item_id or plan.since[0].item_id != last.item_id:
        return ""
    return f", or do without it: {_requeue_and_skip(entity, plan)}"


def with_requeue(entity: Entity, plan: UndoPlan) -> Callable[[Collection[str]], str | None]:
    """Return what tells how to undo although slices have changed, given their ids.

    With `--requeue` the next run processes what is there now, which is possible if all of them were applied
    after the slice.
    """
    later = {each.item_id for each in plan.later}
    typed = f", or process what is there now: {_requeue_and_skip(entity, plan)}"
    return lambda changed: typed if later.issuperset(changed) else None


def _requeue_and_skip(entity: Entity, plan: UndoPlan) -> str:
    skipped = command("skip", called_name(entity.called, plan.item))
    return f"`{requeueing_undo(entity.called, plan.slice)}`, then `{skipped}`, then a run"
