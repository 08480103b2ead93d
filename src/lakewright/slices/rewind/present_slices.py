"""Whether bronze still holds the slices that a rewind applies again.

A slice whose present content an operator has accepted counts as it is now. Its size and its number of files
must be those with which it was processed: otherwise other rows would be applied than are in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.errors import SliceError
from lakewright.manifest.item import Verdict, has_same_amounts, is_changed
from lakewright.manifest.lock import command
from lakewright.slices.discover import called_name, find_slice
from lakewright.slices.rewind.known_slices import name_of
from lakewright.spec.words import first_of

if TYPE_CHECKING:
    from lakewright.manifest.item import Item
    from lakewright.manifest.record import Application
    from lakewright.slices.applied import AppliedSlice
    from lakewright.slices.context import ProcessingContext
    from lakewright.spec.models.entity import Entity

__all__ = ["as_accepted", "as_requeued", "check_bronze"]

MOST_NAMED = 5


def as_accepted(
    context: ProcessingContext, entity: Entity, slices: Sequence[AppliedSlice]
) -> tuple[AppliedSlice, ...]:
    """Return slices with the fingerprints that an operator has accepted since they were processed.

    A warning names the slices that have another one now.
    """
    found, names = _changed_by(_as_accepted, context, slices)
    if names:
        verb = "has" if len(names) == 1 else "have"
        context.warn(
            f"{entity.called}: {first_of(names, MOST_NAMED)} {verb} other files than when processed, and "
            "these were accepted: they are applied as they are now"
        )
    return found


def _changed_by(
    change: Callable[[AppliedSlice, Item, Application], AppliedSlice],
    context: ProcessingContext,
    slices: Sequence[AppliedSlice],
) -> tuple[tuple[AppliedSlice, ...], list[str]]:
    """Return slices after a change that follows from their items, and the names of those that it changed."""
    items = context.ledger.store.read([each.item_id for each in slices])
    found = tuple(
        each if (item := items.get(each.item_id)) is None else change(each, item, context.application)
        for each in slices
    )
    return found, [name_of(now) for now, then in zip(found, slices, strict=True) if now is not then]


def _as_accepted(applied: AppliedSlice, item: Item, application: Application) -> AppliedSlice:
    if not item.is_processed_by(application):
        return applied
    recorded, accepted = applied.fingerprint, item.fingerprint or {}
    is_of_item = item.tokens.get(application.key) == applied.number
    if not is_of_item or not is_changed(recorded, accepted) or not has_same_amounts(recorded, accepted):
        return applied
    return replace(applied, content={**applied.content, "fingerprint": dict(accepted)})


def as_requeued(
    context: ProcessingContext, entity: Entity, slices: Sequence[AppliedSlice]
) -> tuple[AppliedSlice, ...]:
    """Return slices with the fingerprints with which an operator has requeued them, if they wait.

    A warning names the slices that have another one now.
    """
    found, names = _changed_by(_as_requeued, context, slices)
    if names:
        context.warn(
            f"{entity.called}: {first_of(names, MOST_NAMED)} changed since the last processing, and "
            f"{'was' if len(names) == 1 else 'were'} requeued: what is there now is applied in its place"
        )
    return found


def _as_requeued(applied: AppliedSlice, item: Item, application: Application) -> AppliedSlice:
    if item.verdict(application) is not Verdict.READY:
        return applied
    requeued = item.fingerprint or {}
    if not is_changed(applied.fingerprint, requeued):
        return applied
    return replace(applied, content={**applied.content, "fingerprint": dict(requeued)})


def check_bronze(
    context: ProcessingContext,
    entity: Entity,
    slices: Sequence[AppliedSlice],
    *,
    requeued: Collection[str] = (),
    without: Callable[[AppliedSlice], str] = lambda _: "",
    instead: Callable[[Collection[str]], str | None] | None = None,
    rebuild: str | None = None,
) -> None:
    """Raise an error unless bronze holds slices as they were when they were applied.

    Args:
        context: The context of the processing.
        entity: The entity.
        slices: The slices.
        requeued: Ids of those of them that the next run processes as they are then: they may have changed,
            which a warning says.
        without: Returns what the remedy says, after a comma, of how to do without the slices up to the last
            one that is at fault.
        instead: Returns what the remedy says, after a comma, if slices have changed, whose ids it gets; None
            if that does not help. Not called if slices are gone.
        rebuild: The command that applies all slices again except for those that are skipped, if it is typed.

    Raises:
        SliceError: Some are gone or have changed; the error names each.
    """
    bronze = entity.places(context.lake.settings).bronze
    faults, changed, same, ready = [], [], [], []
    last = None
    for each in slices:
        name = name_of(each)
        found = find_slice(bronze, name, context.lake)
        if found is not None and not is_changed(each.fingerprint, found.fingerprint):
            continue
        if found is not None and each.item_id in requeued:
            ready.append(name)
            continue
        last = each
        if found is None:
            faults.append(f"{name} is gone")
        else:
            faults.append(f"{name} has changed since it was processed")
            changed.append(each)
            if has_same_amounts(each.fingerprint, found.fingerprint):
                same.append(called_name(entity.called, name))
    if last is not None:
        is_whole = instead is not None and len(changed) == len(faults)
        told = instead({each.item_id for each in changed}) if instead is not None and is_whole else None
        raise SliceError(
            f"slices of {entity.called} cannot be applied again from {bronze}: {'; '.join(faults)}",
            remedy=f"{_accepting(same)}Bring them back as they were"
            f"{told or _requeuing(entity, changed, rebuild)}{without(last)}. Nothing was written.",
            details={"slices": faults},
        )
    if ready:
        verb = "has" if len(ready) == 1 else "have"
        context.warn(
            f"{entity.called}: {first_of(ready, MOST_NAMED)} {verb} changed since the last processing: the "
            "next run processes what is there now"
        )


def _requeuing(entity: Entity, changed: Sequence[AppliedSlice], rebuild: str | None) -> str:
    """Return what a remedy says, after a comma, of slices that have changed; empty if none has."""
    if not changed:
        return ""
    typed = command("requeue", *(called_name(entity.called, name_of(each)) for each in changed))
    if rebuild is not None:
        return f", or apply what is there now in its place: `{typed} --late`, then `{rebuild}`"
    return f", or process what is there now: `{typed} --cascade`, then a run"


def _accepting(same: Sequence[str]) -> str:
    """Return the sentence of a remedy for slices that have changed at the same size; empty if none has."""
    if not same:
        return ""
    return f"If the rows of {first_of(same, MOST_NAMED)} are the same, type `{command('accept', *same)}`. "
