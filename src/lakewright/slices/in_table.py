"""Whether a table holds a slice, by its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.lake.commit import read_commits
from lakewright.lake.observation import observe_without_spark
from lakewright.slices.applied import effective_commits
from lakewright.slices.moved_lake import HeldSlices, held_slices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakewright.lake.commit import Commit
    from lakewright.lake.lake import Lake
    from lakewright.manifest.item import Item
    from lakewright.manifest.record import Application
    from lakewright.manifest.store import Store
    from lakewright.spec.models.entity import Entity

__all__ = ["is_in_table", "may_hold"]


def is_in_table(lake: Lake, store: Store, entity: Entity, application: Application, item: Item) -> bool:
    """Return whether a table holds a slice as its log shows it, whatever the manifest says.

    Spark is not started: of a table that only Spark can read, the manifest tells.
    """
    places = entity.places(lake.settings)
    state = observe_without_spark(lake, places.silver)
    if state is None:
        return item.is_processed_by(application)
    log = read_commits(lake, places.silver) if state.exists else ()
    chain = tuple(effective_commits(log, str(application)))
    held = held_slices(store, chain, str(application), places.bronze)
    return any(each.item_id == item.item_id for _, slices in held for each in slices)


def may_hold(item: Item, log: Sequence[Commit], stored: Sequence[HeldSlices]) -> bool:
    """Return whether a table holds a slice, given its log; or may, as the log does not reach back far enough.

    Args:
        item: The item of the slice.
        log: The commits that the log still has.
        stored: Those of them that the table's last version builds on, with their slices.
    """
    if any(each.item_id == item.item_id for _, slices in stored for each in slices):
        return True
    return item.revision > 1 and bool(log) and log[0].version > 0
