"""Slices that are gone from bronze, although an undo of another slice needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.lake.commit import read_commits
from lakewright.lake.observation import table_log
from lakewright.manifest.item import Item
from lakewright.slices.applied import effective_commits
from lakewright.slices.discover import item_id, slice_name
from lakewright.slices.moved_lake import held_slices

if TYPE_CHECKING:
    from lakewright.slices.context import ProcessingContext
    from lakewright.slices.discover import Listing
    from lakewright.spec.models.entity import Entity

__all__ = ["archived_for_undo"]


def archived_for_undo(
    context: ProcessingContext, entity: Entity, name: str, listing: Listing
) -> tuple[str, ...] | None:
    """Return the names of slices that are gone, and that an undo of a slice with `--requeue` needs.

    These are the others of its commit, which are applied again, and those after it, which the next run takes;
    not those that are skipped. None is returned if the slice has no commit, or if only Spark reads the log.
    """
    places, application = entity.places(context.lake.settings), context.application
    wanted, app = item_id(f"{places.bronze}/{name}"), str(application)
    try:
        if places.silver.location is None or table_log(context.lake, places.silver) is None:
            return None
        chain = tuple(effective_commits(read_commits(context.lake, places.silver), app))
        held = held_slices(context.ledger.store, chain[::-1], app, places.bronze)
    except LakewrightError:  # a log that can't be read is told by itself
        return None
    slices = [[each.item_id for each in found] for _, found in held]
    first = next((number for number, ids in enumerate(slices) if wanted in ids), None)
    if first is None:
        return None
    present = {item_id(each.path) for each in listing.slices}
    gone = dict.fromkeys(each for ids in slices[first:] for each in ids if each not in present)
    items = context.ledger.store.read(list(gone))
    skipped = {each for each, item in items.items() if item.is_skipped_for(application)}
    return tuple(slice_name(Item(each)) for each in gone if each not in skipped)
