"""Slices that were processed under another place: items are named by their URI, which a move changes."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from lakewright.errors import LakeMoved
from lakewright.slices.discover import item_id, slice_name
from lakewright.slices.processed import first_processed, processed_items

if TYPE_CHECKING:
    from collections.abc import Iterable, Set

    from lakewright.manifest.record import Application
    from lakewright.manifest.store import Store

__all__ = ["continued_items", "moved_lake_error"]


def moved_lake_error(store: Store, application: Application, place: str, names: Set[str]) -> LakeMoved | None:
    """Return the error of slices that were processed elsewhere, if none were processed here; None without.

    All slices of a moved lake would be processed again.

    Args:
        store: The manifest.
        application: The application that processes the slices.
        place: URI of the folder in which the slices are now.
        names: Names of the slices there.
    """
    if not names or first_processed(store, application, f"{place}/") is not None:
        return None
    # Another run may have processed the first slice here since the question above.
    found = (item for item in processed_items(store, application) if not item.item_id.startswith(f"{place}/"))
    before = next((item for item in found if slice_name(item) in names), None)
    if before is None:
        return None
    old = before.item_id.rpartition("/")[0]
    return LakeMoved(
        f"slices of {application} were processed in {old}, and are in {place} now",
        remedy="If the lake was moved or copied, update the manifest with "
        f"`lakewright manifest move {shlex.quote(old)} {shlex.quote(place)}`. "
        "If these are other slices, run DESTROY first to start over.",
        details={"old": old, "new": place},
    )


def continued_items(store: Store, ids: Iterable[str], bronze: str) -> frozenset[str]:
    """Return those of some items of other places whose slices have an item in the bronze folder.

    `manifest move` has copied their records there and keeps them; they say nothing about the folder.
    """
    here = f"{item_id(bronze)}/"
    present = {each: here + each.rpartition("/")[2] for each in ids if not each.startswith(here)}
    known = store.read(list(present.values()))
    return frozenset(each for each, there in present.items() if there in known)
