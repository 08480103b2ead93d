"""The slices of the project's entities, and the entities whose places are known to the project."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.slices.application import application_of
from lakewright.slices.chain import SliceChain

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.ledger import Ledger
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.places import Places

__all__ = ["chain_of", "placed_entities"]


def chain_of(app: App, entity: Entity, ledger: Ledger | None = None) -> SliceChain:
    """Return the slices of an entity, with the manifest as it is opened or as another ledger writes it."""
    return SliceChain(app.lake, ledger or app.ledger, entity, application_of(app.project.name, entity))


def placed_entities(app: App) -> Iterator[tuple[Entity, Places]]:
    """Yield the entities whose places are known, with these; `due_rebuilds` names the others.

    Others take part of their places from the parameters of a job.
    """
    for entity in app.project.entities.values():
        try:
            yield entity, entity.places(app.project.lake)
        except LakewrightError:
            continue
