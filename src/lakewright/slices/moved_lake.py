"""Slices that were processed under another place or another name, as a moved lake or a renamed project.

Items are named by their URI, which a move changes. Under a new name, all slices would be processed again, on
top of their own rows.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from lakewright.errors import LakeMoved
from lakewright.lake.commit import slice_key
from lakewright.lake.observation import last_commit_number, observe_table
from lakewright.manifest.record import Application
from lakewright.slices.application import is_of_lakewright
from lakewright.slices.discover import item_id, slice_name
from lakewright.slices.processed import first_processed, processed_items

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence, Set

    from lakewright.lake.lake import Lake
    from lakewright.manifest.item import Item
    from lakewright.manifest.store import Store
    from lakewright.spec.models.places import Address

__all__ = ["continued_in", "former_name_error", "moved_lake_error", "processed_by", "without_continued"]


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


def without_continued(store: Store, items: Iterable[Item], bronze: str) -> list[Item]:
    """Return items without those of other places whose slices have an item in the bronze folder."""
    found = list(items)
    continued = continued_in(store, (item.item_id for item in found), bronze)
    return [item for item in found if item.item_id not in continued]


def continued_in(store: Store, ids: Iterable[str], bronze: str) -> dict[str, str]:
    """Return those of some items of other places whose slices have an item in the bronze folder, and which.

    `manifest move` has copied their records there and keeps them; they say nothing about the folder.
    """
    here = f"{item_id(bronze)}/"
    present = {each: here + slice_key(each) for each in ids if not each.startswith(here)}
    known = store.read(list(present.values()))
    return {each: there for each, there in present.items() if there in known}


def former_name_error(
    lake: Lake, store: Store, silver: Address, application: Application, others: Iterable[Application]
) -> LakeMoved | None:
    """Return the error of a table that holds slices of another application, and none of its own; or None.

    Args:
        lake: The lake.
        store: The manifest.
        silver: The table.
        application: The application that is to process slices into it.
        others: Applications that have processed slices; those that are not Lakewright's do not count.
    """
    names = sorted({each.key for each in others if is_of_lakewright(each)} - {application.key}, key=str)
    if not names or first_processed(store, application) is not None:
        return None
    if last_commit_number(lake, silver, str(application)) is not None or observe_table(lake, silver).is_empty:
        return None
    found = (
        each for each in (Application.named(*name) for name in names) if _has_written(lake, silver, each)
    )
    former = next(found, None)
    if former is None:
        return None
    return LakeMoved(
        f"{silver} holds slices of {former}, and none of {application}: the project or the entity has "
        "another name now",
        remedy="Give it its former name back to go on with the table. To start over, run TRUNCATE, which "
        "empties it.",
        details={"old": str(former), "new": str(application)},
    )


def processed_by(store: Store, item_ids: Sequence[str]) -> Iterable[Application]:
    """Return the applications that have processed these items."""
    return [mark.application for item in store.read(item_ids).values() for mark in item.processed]


def _has_written(lake: Lake, silver: Address, application: Application) -> bool:
    return last_commit_number(lake, silver, str(application)) is not None
