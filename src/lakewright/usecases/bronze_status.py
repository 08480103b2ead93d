"""What a look at bronze adds to a project's status: slices that changed or are gone, and what can't be read.

Only folders of this machine are looked at: for others, Spark would have to be started.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from lakewright.errors import Fault, StorageUnavailable
from lakewright.lake.paths import local_path
from lakewright.slices.application import application_of
from lakewright.slices.changed import requeue_command, vanished_slices
from lakewright.slices.deviations import Deviations, changed_items
from lakewright.slices.discover import Listing, item_id, list_bronze, natural_key, slice_name
from lakewright.usecases.placed import placed_entities

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spec.models.entity import Entity

__all__ = ["BronzeStatus", "Vanished", "look_at_bronze"]

MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Vanished:
    """Processed slices of an entity that are no longer in bronze.

    Attributes:
        count: Number of these slices.
        slices: Names of the first of them.
    """

    entity: str
    count: int
    slices: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the object that `status -o json` prints."""
        return {"entity": self.entity, "count": self.count, "slices": list(self.slices)}


@dataclass(frozen=True, slots=True)
class BronzeStatus:
    """How bronze deviates from what the manifest has recorded.

    Attributes:
        vanished: Processed slices that are gone, by entity.
        changed: A fault for each entity with slices that changed since they were processed, with the commands
            to type; its details name the items.
        unreadable: A fault for each folder that can't be read.
    """

    vanished: tuple[Vanished, ...] = ()
    changed: tuple[Fault, ...] = ()
    unreadable: tuple[Fault, ...] = ()

    def changed_beside(self, told: Collection[str]) -> tuple[Fault, ...]:
        """Return the faults of changed slices without those of which every item was told already."""
        return tuple(each for each in self.changed if not set(each.details["changed"]) <= set(told))


def look_at_bronze(app: App) -> BronzeStatus:
    """Return how bronze deviates from the manifest; of each entity's folder on this machine."""
    vanished: list[Vanished] = []
    changed: list[Fault] = []
    unreadable: list[Fault] = []
    for entity, places in placed_entities(app):
        try:
            gone, fault = _look(app, entity, places.bronze)
        except StorageUnavailable as error:
            unreadable.append(error.as_fault())
            continue
        vanished += gone
        changed += [] if fault is None else [fault]
    return BronzeStatus(tuple(vanished), tuple(changed), tuple(unreadable))


def _look(app: App, entity: Entity, bronze: str) -> tuple[list[Vanished], Fault | None]:
    if local_path(bronze) is None:
        return [], None
    listing, application = list_bronze(bronze, app.lake), application_of(app.project.name, entity)
    present = app.store.read([item_id(slice_.path) for slice_ in listing.slices])
    found = vanished_slices(app.store, application, present)
    gone = (
        [Vanished(entity.called, found.count, tuple(islice(found.names, MOST_NAMED)))] if found.count else []
    )
    if entity.settings.changed_slices == "ignore":
        return gone, None
    changed = sorted(
        changed_items(present.values(), listing, application), key=lambda item: natural_key(slice_name(item))
    )
    deviations = Deviations(
        entity=entity.called,
        bronze=bronze,
        listing=Listing(),
        changed=tuple(changed),
        requeue=requeue_command(entity, changed, present),
    )
    return gone, deviations.fault
