"""Slices that were processed under another place or another name, as a moved lake or a renamed project.

Items are named by their URI, which a move changes. Under a new name, all slices would be processed again, on
top of their own rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.errors import LakeMoved
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.observation import observe_table
from lakewright.manifest.record import Application
from lakewright.slices.application import is_of_lakewright
from lakewright.slices.discover import item_id, slice_name
from lakewright.slices.processed import first_processed, processed_items

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Set

    from lakewright.slices.chain import SliceChain

__all__ = ["former_name_error", "moved_lake_error"]


def moved_lake_error(chain: SliceChain, names: Callable[[], Set[str]]) -> LakeMoved | None:
    """Return the error of slices that were processed elsewhere, if none were processed here; None without.

    All slices of a moved lake would be processed again.

    Args:
        chain: The slices of the entity.
        names: Returns the names of the slices that are in its bronze folder now; not called where slices were
            processed here.
    """
    store, application, place = chain.store, chain.application, item_id(chain.bronze)
    if first_processed(store, application, chain.prefix) is not None:
        return None
    present = names()
    if not present:
        return None
    # Another run may have processed the first slice here since the question above.
    found = (
        item for item in processed_items(store, application) if not item.item_id.startswith(chain.prefix)
    )
    before = next((item for item in found if slice_name(item) in present), None)
    if before is None:
        return None
    old = before.item_id.rpartition("/")[0]
    return LakeMoved(
        f"slices of {application} were processed in {old}, and are in {place} now",
        remedy=Phrase(
            "If the lake was moved or copied, update the manifest with ",
            Command("manifest", "move", old, place),
            ". If these are other slices, run DESTROY first to start over.",
        ),
        details={"old": old, "new": place},
    )


def former_name_error(chain: SliceChain, others: Iterable[Application]) -> LakeMoved | None:
    """Return the error of a table that holds slices of another application, and none of its own; or None.

    Args:
        chain: The slices of the entity that is to process slices into the table.
        others: Applications that have processed slices; those that are not Lakewright's do not count.
    """
    own, silver = chain.application, chain.silver
    names = sorted({each.key for each in others if is_of_lakewright(each)} - {own.key}, key=str)
    if not names or chain.first_processed is not None:
        return None
    if chain.last_number is not None or observe_table(chain.lake, silver).is_empty:
        return None
    formers = (replace(chain, application=Application.named(*name)) for name in names)
    former = next((each.application for each in formers if each.last_number is not None), None)
    if former is None:
        return None
    return LakeMoved(
        f"{silver} holds slices of {former}, and none of {own}: the project or the entity has another name "
        "now",
        remedy="Give it its former name back to go on with the table. To start over, run TRUNCATE, which "
        "empties it.",
        details={"old": str(former), "new": str(own)},
    )
