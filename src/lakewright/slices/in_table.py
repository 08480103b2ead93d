"""Whether a table holds a slice, by its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.lake.commit import read_commits
from lakewright.lake.observation import observe_without_spark
from lakewright.slices.applied import effective_commits
from lakewright.slices.moved_lake import held_slices

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.item import Item
    from lakewright.manifest.record import Application
    from lakewright.manifest.store import Store
    from lakewright.spec.models.entity import Entity

__all__ = ["is_in_table"]


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
