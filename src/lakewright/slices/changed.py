"""Processed slices that have changed: found in bronze, and requeued if the entity asks for it.

Source: `processing-manifest.md`, "Use cases" (command post). `changed_slices` is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.lock import command
from lakewright.manifest.record import Author, Draft, State
from lakewright.manifest.store import Query
from lakewright.slices.deviations import MOST_NAMED, Deviations, changed_items, later_processed
from lakewright.slices.discover import discovered, item_id, natural_key, slice_name

if TYPE_CHECKING:
    from lakewright.manifest.discovery import DiscoveredSlice
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.discover import Listing
    from lakewright.spec.models.entity import Entity

__all__ = ["find_deviations", "new_item", "processed_items", "requeue_changed"]


def find_deviations(
    context: ProcessingContext, entity: Entity, listing: Listing, items: Mapping[str, Item]
) -> Deviations:
    """Return how bronze deviates from the recorded items of the slices that it holds."""
    bronze = entity.places(context.lake.settings).bronze
    is_watched = entity.settings.changed_slices != "ignore"
    changed = tuple(changed_items(items.values(), listing, context.application)) if is_watched else ()
    changed = tuple(sorted(changed, key=lambda item: natural_key(slice_name(item))))
    is_lost = not listing.exists and next(processed_items(context, f"{item_id(bronze)}/"), None) is not None
    return Deviations(
        entity=entity.name,
        bronze=bronze,
        listing=listing,
        changed=changed,
        requeue=_requeue_command(entity, changed, items),
        vanished=_vanished(context, items),
        is_lost=is_lost,
    )


def _vanished(context: ProcessingContext, items: Mapping[str, Item]) -> int:
    """Return how many slices were processed that are not among those in bronze; they are not read."""
    present = sum(1 for item in items.values() if item.verdict(context.application) is Verdict.PROCESSED)
    recorded = context.ledger.store.counts().get((context.application, Verdict.PROCESSED), 0)
    return max(0, recorded - present)


def _requeue_command(entity: Entity, changed: Sequence[Item], items: Mapping[str, Item]) -> str:
    """Return the command that has changed slices processed again, with those after them if needed.

    Slices that are ready count too: the run that names the command may have processed them by its end.
    """
    if not changed:
        return ""
    first = natural_key(slice_name(changed[0]))
    is_followed = any(natural_key(slice_name(item)) > first for item in items.values())
    if is_followed and entity.settings.late_slices == "refuse":
        return f"{command('requeue', f'{entity.name}/{slice_name(changed[0])}')} --cascade"
    return command("requeue", *(f"{entity.name}/{slice_name(item)}" for item in changed))


def requeue_changed(
    context: ProcessingContext,
    entity: Entity,
    deviations: Deviations,
    items: Mapping[str, Item],
    *,
    is_recorded: bool,
) -> tuple[Deviations, dict[str, Item]]:
    """Requeue changed slices, and those after them unless late slices are applied; return the new items."""
    first, changed = deviations.changed[0], deviations.changed
    is_alone = entity.settings.late_slices == "apply"
    later = () if is_alone else later_processed(first, items.values(), context.application)
    again = changed if is_alone else (first, *later)
    found = {
        each.item_id: each
        for each in discovered(deviations.listing.slices, context.application, entity.name)
        if any(item.item_id == each.item_id for item in again)
    }
    if is_recorded:
        fingerprints = {name: each.fingerprint for name, each in found.items()}
        reason = f"changed after it was processed: {', '.join(map(slice_name, changed[:MOST_NAMED]))}"
        for item in changed if is_alone else (first,):
            context.ledger.requeue(
                item.item_id,
                reason,
                fingerprint=fingerprints[item.item_id],
                cascade=tuple(other.item_id for other in later),
                fingerprints=fingerprints,
            )
        new = dict(context.ledger.store.read([item.item_id for item in again]))
    else:
        new = {name: new_item(each) for name, each in found.items()}
    names = tuple(map(slice_name, again))
    return replace(deviations, changed=(), requeue="", requeued=names), {**items, **new}


def new_item(found: DiscoveredSlice) -> Item:
    """Return the item of a slice as if it had just been recorded."""
    content = {"entity": found.entity, "slice": found.slice, "fingerprint": dict(found.fingerprint)}
    draft = Draft(
        record_id="",
        item_id=found.item_id,
        state=State.NEW,
        application=found.application,
        author=Author.named("lakewright"),
        payload={"schema": "lakewright/new/1", "data": content},
    )
    return Item(found.item_id).after(draft.recorded(sequence=1, now=datetime.min.replace(tzinfo=UTC)))


def processed_items(context: ProcessingContext, prefix: str = "") -> Iterator[Item]:
    """Return the items that the application has processed, below a prefix of their ids."""
    query = Query(application=context.application, verdicts=frozenset({Verdict.PROCESSED}), prefix=prefix)
    return iter(context.ledger.store.select(query))
