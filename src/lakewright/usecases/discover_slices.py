"""Discover slices: record new ones, and compare bronze and silver with the manifest."""

from __future__ import annotations

from collections.abc import Sequence

from lakewright.app import App
from lakewright.slices.inventory import Differences
from lakewright.usecases.items import inventory_of

__all__ = ["discover_slices"]


def discover_slices(app: App, entities: Sequence[str] = ()) -> Differences:
    """Record new slices of these entities, or of all that are enabled; return every difference found.

    Raises:
        SpecError: There is no such entity.
    """
    project = app.project
    names = entities or tuple(name for name, entity in project.entities.items() if entity.enabled)
    return inventory_of(app).differences([project.entity(name) for name in names])
