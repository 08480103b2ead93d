"""Finding items for the commands of the manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.cli.call import Call
from lakewright.cli.items import Listing, entity_application
from lakewright.errors import UsageError

if TYPE_CHECKING:
    from lakewright.manifest.item import Item
    from lakewright.manifest.ledger import Ledger
    from lakewright.slices.inventory import Inventory

__all__ = ["inventory_of", "known_item", "ledger_of", "listing_of"]


def listing_of(call: Call) -> Listing:
    """Return what makes rows of the project's items."""
    return Listing(call.app.store, call.app.ledger.lock)


def inventory_of(call: Call, author: str | None = None) -> Inventory:
    """Return the slices of the project's entities as bronze, silver and the manifest have them.

    What is written goes by the author's name; without one, by the tool's.
    """
    from lakewright.slices.inventory import Inventory

    app = call.app
    ledger = app.ledger if author is None else ledger_of(call, author)
    return Inventory(
        lake=app.lake,
        ledger=ledger,
        entities=app.project.entities,
        places_of=lambda entity: entity.places(app.project.lake),
        application_of=lambda entity: entity_application(app, entity.name),
    )


def ledger_of(call: Call, author: str) -> Ledger:
    """Return the manifest's items and locks, written to as an operator."""
    from lakewright.manifest.ledger import Ledger
    from lakewright.manifest.record import Author
    from lakewright.stores.process import is_dead

    app = call.app
    return Ledger(app.store, Author.named(author), ids=app.ids, is_dead=is_dead, redactor=app.redactor)


def known_item(call: Call, text: str) -> Item:
    """Return the item that a text names: as its id stands in the manifest, or as a place in the lake."""
    from lakewright.slices.discover import item_id

    for candidate in dict.fromkeys((text, text.rstrip("/"), f"{text}/", item_id(text))):
        item = call.app.ledger.item(candidate)
        if item.sequence:
            return item
    raise UsageError(
        f"the manifest has no item {text}",
        remedy="See what there is with `lakewright manifest ls`; `discover` there records new slices.",
    )
