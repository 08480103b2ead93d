"""Slices that are ready, but that the next run fails because a later slice of their entity is processed.

Nothing has to fail first: such slices and what to type about them are known from the manifest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from lakewright.lake.paths import local_path
from lakewright.manifest.item import Item, Verdict
from lakewright.manifest.lock import command
from lakewright.manifest.store import Query
from lakewright.slices.application import application_of
from lakewright.slices.discover import item_id, list_slices, natural_key, slice_name
from lakewright.slices.time_check import may_be_late

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spec.models.entity import Entity

__all__ = ["LATE", "late_items", "late_remedy"]

LATE = "older than one that is already processed"


def late_items(app: App, entity: Entity, items: Iterable[Item]) -> tuple[Item, ...]:
    """Return those of an entity's ready items that the next run refuses as late.

    As a run does, it compares them with slices in bronze: with all processed ones if only Spark may list it.

    Raises:
        StorageUnavailable: The bronze folder can't be read.
    """
    application = application_of(app.project.name, entity)
    asked = {natural_key(slice_name(item)): item for item in items if not may_be_late(entity, item)}
    if not asked:
        return ()
    bronze = entity.places(app.project.lake).bronze
    if local_path(bronze) is None:
        processed = frozenset({Verdict.PROCESSED})
        found: Iterable[Item] = app.store.select(Query(application, processed, prefix=f"{item_id(bronze)}/"))
    else:
        # Only later slices are read: a status must not cost by what has ever been processed.
        listed = list_slices(bronze, app.lake)
        later = [item_id(each.path) for each in listed if natural_key(each.name) > min(asked)]
        found = app.store.read(later).values()
    done = [natural_key(slice_name(each)) for each in found if each.verdict(application) is Verdict.PROCESSED]
    return tuple(item for key, item in asked.items() if done and key < max(done))


def late_remedy(names: Collection[str]) -> str:
    """Return what to type about late slices, which are named as commands call them.

    Example:
        >>> late_remedy(["a/1"])
        '`lakewright manifest requeue a/1 --late` applies it, `lakewright manifest skip a/1` leaves it out'
    """
    it = "it" if len(names) == 1 else "them"
    requeue, skip = command("requeue", *names), command("skip", *names)
    return f"`{requeue} --late` applies {it}, `{skip}` leaves {it} out"
