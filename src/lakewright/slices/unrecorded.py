"""Slices of an entity that its table holds, or lost, and of which the manifest does not know that.

The manifest is then an older copy, or was lost. Nothing is recorded here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.manifest.item import Verdict
from lakewright.manifest.store import Query
from lakewright.slices.changed import new_item
from lakewright.slices.discover import discovered, item_id, list_slices
from lakewright.slices.processed import place_of
from lakewright.slices.recover_from_log import as_if_recovered, lacks_commits
from lakewright.slices.rewind.unrecorded import as_if_rewound, unrecorded_rewinds

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.item import Item
    from lakewright.manifest.ledger import Ledger
    from lakewright.manifest.record import Application
    from lakewright.spec.models.places import Places

__all__ = ["UNRECORDED_ADVICE", "unrecorded_items"]

UNRECORDED_ADVICE = (
    "If the manifest is an older copy, bring the newer one back if there is one. Otherwise the next run "
    "records these slices as the table's log tells them, without applying any of them twice"
)

_OPEN = frozenset((Verdict.READY, Verdict.LOCKED, Verdict.FAILED, Verdict.INVALID))


def unrecorded_items(
    lake: Lake,
    ledger: Ledger,
    places: Places,
    application: Application,
    called: str,
    *,
    lists_bronze: bool = True,
) -> tuple[Item, ...]:
    """Return the items that the next run of an entity records from the table's log, as they are then.

    Args:
        lake: The lake.
        ledger: The manifest.
        places: Where the entity's slices and rows are.
        application: The application that processes the slices.
        called: What commands call the entity.
        lists_bronze: Whether slices are looked for that the manifest does not list at all.
    """
    rewinds = unrecorded_rewinds(lake, ledger, places.silver, application)
    rewound = as_if_rewound(ledger, rewinds, application)
    if not lacks_commits(lake, ledger, places.silver, application):
        return tuple(sorted(rewound.values(), key=place_of))
    store, prefix = ledger.store, item_id(places.bronze) + "/"
    items = {item.item_id: item for item in store.select(Query(verdicts=_OPEN, prefix=prefix))}
    if lists_bronze:
        found = (new_item(each) for each in discovered(list_slices(places.bronze, lake), application, called))
        new = {item.item_id: item for item in found}
        items = {**new, **store.read(list(new)), **items}
    items |= rewound
    recovered = {**rewound, **as_if_recovered(lake, ledger, places.silver, items.values(), application)}
    return tuple(sorted(recovered.values(), key=place_of))
