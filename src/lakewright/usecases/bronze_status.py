"""What a look at bronze adds to a project's status: slices that are gone, folders that can't be read.

Only folders of this machine are looked at: for others, Spark would have to be started.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from lakewright.errors import Fault, StorageUnavailable
from lakewright.lake.paths import local_path
from lakewright.slices.application import application_of
from lakewright.slices.changed import vanished_slices
from lakewright.slices.discover import item_id, list_slices

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spec.models.entity import Entity

__all__ = ["Vanished", "look_at_bronze"]

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


def look_at_bronze(app: App) -> tuple[tuple[Vanished, ...], tuple[Fault, ...]]:
    """Return the entities with slices that are gone, and a fault for each folder that can't be read."""
    vanished: list[Vanished] = []
    unreadable: list[Fault] = []
    for entity in app.project.entities.values():
        try:
            vanished += _vanished(app, entity)
        except StorageUnavailable as error:
            unreadable.append(error.as_fault())
    return tuple(vanished), tuple(unreadable)


def _vanished(app: App, entity: Entity) -> Iterator[Vanished]:
    bronze = entity.places(app.project.lake).bronze
    if local_path(bronze) is None:
        return
    present = app.store.read([item_id(slice_.path) for slice_ in list_slices(bronze, app.lake)])
    found = vanished_slices(app.store, application_of(app.project.name, entity), present)
    if found.count:
        yield Vanished(entity.name, found.count, tuple(islice(found.names, MOST_NAMED)))
