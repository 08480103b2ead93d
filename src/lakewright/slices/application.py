"""The application on whose behalf an entity's slices are processed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lakewright.manifest.applications import named_application
from lakewright.manifest.record import Application
from lakewright.spec.models.entity import Entity

if TYPE_CHECKING:
    from lakewright.manifest.item import Item

_LAKEWRIGHT = "lakewright/"


def application_of(project: str, entity: Entity) -> Application:
    """Return the application of an entity; its instance is the entity's destination.

    Example:
        >>> application_of("shop", Entity(id="1", name="orders", connection="web", processtype="full")).name
        'lakewright/shop/orders'
    """
    return Application.named(f"{_prefix(project)}{entity.identity}", entity.destination)


def entity_of(project: str, application: Application) -> str | None:
    """Return the identity of the entity of a project whose application it is; None for other applications."""
    prefix = _prefix(project)
    return application.name.removeprefix(prefix) if application.name.startswith(prefix) else None


def is_of_lakewright(application: Application) -> bool:
    """Return whether an application is an entity of any project."""
    return application.name.startswith(_LAKEWRIGHT)


def _prefix(project: str) -> str:
    return f"{_LAKEWRIGHT}{project}/"


def applications_before(entity: Entity) -> tuple[Application, ...]:
    """Return the applications that must have processed a slice before the entity does."""
    return tuple(map(named_application, entity.after))


def awaited_of(item: Item, after: Iterable[Application]) -> list[Application]:
    """Return those of some applications that must still process an item before others do."""
    return [each for each in after if not item.is_processed_by(each)]
