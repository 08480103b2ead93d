"""Slices that are gone from bronze, and that must be applied again together with one that has changed."""

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

__all__ = ["archived_beside"]


def archived_beside(
    context: ProcessingContext, entity: Entity, name: str, listing: Listing
) -> tuple[str, ...]:
    """Return the names of slices that are gone, and that the commit of a slice holds before it.

    An undo of the slice applies them again. Only a log that is read without Spark is looked at.
    """
    places = entity.places(context.lake.settings)
    app, present = str(context.application), {item_id(each.path) for each in listing.slices}
    wanted = item_id(f"{places.bronze}/{name}")
    try:
        if places.silver.location is None or table_log(context.lake, places.silver) is None:
            return ()
        chain = tuple(effective_commits(read_commits(context.lake, places.silver), app))
        held = held_slices(context.ledger.store, chain[::-1], app, places.bronze)
    except LakewrightError:  # a log that can't be read is told by itself
        return ()
    for _, slices in held:
        ids = [each.item_id for each in slices]
        if wanted in ids:
            return tuple(slice_name(Item(each)) for each in ids[: ids.index(wanted)] if each not in present)
    return ()
