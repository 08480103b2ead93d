"""Discover slices: record new ones, and compare bronze and silver with the manifest."""

from __future__ import annotations

from collections.abc import Sequence

from lakewright.app import App
from lakewright.lake.storage_errors import DAMAGED, known_remedy, moving_command
from lakewright.slices.inventory import Differences
from lakewright.strategies.outdated import rebuild_command
from lakewright.usecases.items import inventory_of

__all__ = ["discover_slices"]


def discover_slices(app: App, entities: Sequence[str] = ()) -> Differences:
    """Record new slices of these entities, or of all that are enabled; return every difference found.

    A damaged table is told with the command that makes it again.

    Raises:
        SpecError: There is no such entity.
    """
    project = app.project
    names = entities or tuple(name for name, entity in project.entities.items() if entity.enabled)
    found = inventory_of(app).differences([project.entity(name) for name in names])
    for name, error in found.unreadable:
        if DAMAGED in error.details:
            rebuild = rebuild_command(project.entity(name)).plus("--yes")
            error.remedy = known_remedy((moving_command(str(error.details[DAMAGED])), rebuild))
    return found
