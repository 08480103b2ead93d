"""Finding items for the commands of the manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.cli.call import Call
from lakewright.cli.items import Listing
from lakewright.errors import UsageError

if TYPE_CHECKING:
    from lakewright.manifest.item import Item

__all__ = ["known_item", "listing_of"]


def listing_of(call: Call) -> Listing:
    """Return what makes rows of the project's items."""
    return Listing(call.app.store, call.app.ledger.lock)


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
