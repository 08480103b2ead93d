"""The slices that an application has processed, as the manifest says, and the places of others among them.

A slice is late if it comes before a processed one, in the natural order of their names. A slice counts as
processed also if it is no longer in bronze, which others may clean up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from lakewright.lake.commit import slice_key
from lakewright.manifest.item import Verdict
from lakewright.manifest.store import Query
from lakewright.slices.discover import item_id, natural_key, slice_name, slice_of_id

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from lakewright.manifest.item import Item
    from lakewright.manifest.record import Application
    from lakewright.manifest.store import Store

__all__ = [
    "Place",
    "continued_in",
    "first_processed",
    "is_late",
    "last_processed",
    "place_of",
    "processed_items",
    "without_continued",
]


def processed_items(store: Store, application: Application, prefix: str = "") -> Iterator[Item]:
    """Return the items that an application has processed, below a prefix of their ids."""
    query = Query(application=application, verdicts=frozenset({Verdict.PROCESSED}), prefix=prefix)
    return iter(store.select(query))


def first_processed(store: Store, application: Application, prefix: str = "") -> Item | None:
    """Return one of these items, or None if there is none."""
    return next(processed_items(store, application, prefix), None)


Place: TypeAlias = tuple[tuple[int, int, str], ...]
"""The place of a slice in the order of names."""


def place_of(item: Item) -> Place:
    """Return the place of an item's slice."""
    return natural_key(slice_name(item))


def is_late(item: Item, last: Place | None) -> bool:
    """Return whether an item's slice comes before the last processed one."""
    return last is not None and place_of(item) < last


def last_processed(
    store: Store, application: Application, bronze: str, present: Mapping[str, Item] | None = None
) -> Place | None:
    """Return the place of the last slice of a bronze folder that an application has processed, or None.

    Args:
        store: The manifest.
        application: The application.
        bronze: The folder.
        present: The items of all slices in the folder, if they are known. Unless more slices are recorded as
            processed, no others are looked at: their number grows with time.
    """
    there = present or {}
    done: list[Place | None] = [
        place_of(item) for item in there.values() if item.verdict(application) is Verdict.PROCESSED
    ]
    if present is None or store.counts().get((application, Verdict.PROCESSED), 0) > len(done):
        done.append(_last_of_others(store, application, item_id(bronze) + "/", there))
    return max(filter(None, done), default=None)


def _last_of_others(
    store: Store, application: Application, prefix: str, known: Container[str]
) -> Place | None:
    """Return the last place of processed slices that are not known, of which only the last is read."""
    query = Query(application=application, verdicts=frozenset({Verdict.PROCESSED}), prefix=prefix)
    places = {natural_key(slice_of_id(each)): each for each in store.candidates(query) if each not in known}
    while places:
        last = max(places)
        item = store.read([places.pop(last)])
        if any(each.verdict(application) is Verdict.PROCESSED for each in item.values()):
            return last
    return None


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
