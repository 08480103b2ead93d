"""Slices that are ready, but that the next run fails because a later slice of their entity is processed.

Nothing has to fail first: such slices and what to type about them are known from the manifest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from lakewright.lake.paths import local_path
from lakewright.manifest.item import Item
from lakewright.manifest.lock import command
from lakewright.slices.application import application_of
from lakewright.slices.discover import item_id, list_slices
from lakewright.slices.late import is_late, last_processed
from lakewright.slices.time_check import may_be_late
from lakewright.usecases.unrecorded_slices import as_after_recovery

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spec.models.entity import Entity

__all__ = ["LATE", "late_items", "late_remedy"]

LATE = "older than one that is already processed"


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


def late_remedy(names: Collection[str], *, is_full: bool) -> str:
    """Return what to type about late slices, which are named as commands call them.

    Args:
        names: Their names.
        is_full: Whether their entity has the strategy Full, so that they would replace newer rows.

    Example:
        >>> late_remedy(["a/1"], is_full=False)
        '`lakewright manifest requeue a/1 --late` applies it, `lakewright manifest skip a/1` leaves it out'
        >>> late_remedy(["a/1"], is_full=True).partition(",")[0]
        '`lakewright manifest skip a/1` leaves it out'
    """
    it, its = ("it", "its") if len(names) == 1 else ("them", "their")
    requeue, skip = f"`{command('requeue', *names)} --late`", f"`{command('skip', *names)}`"
    if is_full:
        return f"{skip} leaves {it} out, {requeue} replaces newer rows by {its} own"
    return f"{requeue} applies {it}, {skip} leaves {it} out"
