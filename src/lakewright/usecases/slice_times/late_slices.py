"""Slices that are ready, but that the next run fails because a later slice of their entity is processed.

Nothing has to fail first: such slices and what to type about them are known from the manifest.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from lakewright.lake.paths import local_path
from lakewright.manifest.item import Item
from lakewright.slices.application import application_of
from lakewright.slices.discover import item_id, list_slices
from lakewright.slices.late_advice import LateSlices, find_late_slices
from lakewright.slices.other_runs import declared_strategy, processing_jobs
from lakewright.slices.processed import is_late, last_processed
from lakewright.slices.time_check import may_be_late
from lakewright.usecases.damage.unrecorded_slices import as_after_recovery
from lakewright.usecases.slice_times.target_times import declared_slice_time, placement_of

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spec.models.entity import Entity

__all__ = ["late_items", "late_slices_of"]


def late_items(app: App, entity: Entity, items: Iterable[Item]) -> tuple[Item, ...]:
    """Return those of an entity's ready items that the next run refuses as late.

    Raises:
        StorageUnavailable: The bronze folder can't be read.
    """
    asked = tuple(item for item in items if not may_be_late(entity, item))
    if not asked:
        return ()
    bronze, application = entity.places(app.project.lake).bronze, application_of(app.project.name, entity)
    present = None
    if local_path(bronze) is not None:
        known = app.store.read([item_id(each.path) for each in list_slices(bronze, app.lake)])
        present = as_after_recovery(app, entity, known)
    last = last_processed(app.store, application, bronze, present)
    return tuple(item for item in asked if is_late(item, last))


def late_slices_of(app: App, entity: Entity, names: tuple[str, ...]) -> LateSlices:
    """Return late slices of an entity with what to type about them."""
    strategies = {declared_strategy(each, entity) for _, each in processing_jobs(app.project, entity.called)}
    by = strategies.pop() if len(strategies) == 1 else entity.strategy
    declared = partial(declared_slice_time, app, entity.called)
    return find_late_slices(entity, names, placement_of(app, entity), declared, by)
