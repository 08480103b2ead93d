"""The application on whose behalf an entity's slices are processed."""

from __future__ import annotations

from lakewright.manifest.record import Application
from lakewright.spec.models.entity import Entity

__all__ = ["application_of"]


def application_of(project: str, entity: Entity) -> Application:
    """Return the application of an entity; its instance is the entity's destination.

    Example:
        >>> application_of("shop", Entity(id="1", name="orders", connection="web", processtype="full")).name
        'lakewright/shop/orders'
    """
    return Application.named(f"lakewright/{project}/{entity.name}", entity.destination)
