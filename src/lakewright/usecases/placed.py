"""Entities whose places are known to the project; others take part of theirs from the parameters of a job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.places import Places

__all__ = ["placed_entities"]


def placed_entities(app: App) -> Iterator[tuple[Entity, Places]]:
    """Yield the entities whose places are known, with these; `due_rebuilds` names the others."""
    for entity in app.project.entities.values():
        try:
            yield entity, entity.places(app.project.lake)
        except LakewrightError:
            continue
