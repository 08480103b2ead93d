"""The application on whose behalf an entity's slices are processed."""

from __future__ import annotations

from lakewright.manifest.applications import named_application
from lakewright.manifest.record import Application
from lakewright.spec.models.entity import Entity

__all__ = ["application_of", "applications_before"]


def application_of(project: str, entity: Entity) -> Application:
    """Return the application of an entity; its instance is the entity's destination.

    Example:
        >>> application_of("shop", Entity(id="1", name="orders", connection="web", processtype="full")).name
        'lakewright/shop/orders'
    """
    return Application.named(f"lakewright/{project}/{entity.name}", entity.destination)


def applications_before(entity: Entity) -> tuple[Application, ...]:
    """Return the applications that must have processed a slice before the entity does."""
    return tuple(map(named_application, entity.after))
