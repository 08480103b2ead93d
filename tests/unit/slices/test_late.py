"""The last processed slice of an entity, wherever the slices are now."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.slices.test_pending import PROCESSED, US, item

from lakewright.manifest.item import Item
from lakewright.manifest.record import State
from lakewright.slices.chain import Place, SliceChain, place_of
from lakewright.slices.discovery import natural_key, slice_name
from lakewright.slices.pending_slices import sort_pending


class Recorded:
    """A manifest of which it is seen which items are read, and whose index is behind by one item."""

    def __init__(self, *items: Item) -> None:
        self.items = {each.item_id: each for each in items}
        self.read_ids: list[str] = []

    def counts(self) -> dict[Any, int]:
        done = [each.verdict(US) for each in self.items.values()]
        return {(US, verdict): done.count(verdict) for verdict in set(done)}

    def candidates(self, _: object) -> list[str]:
        return sorted(self.items)

    def read(self, ids: list[str]) -> dict[str, Item]:
        self.read_ids += ids
        return {each: self.items[each] for each in ids}


def last_processed(store: Any, present: dict[str, Item] | None = None) -> Place | None:
    chain: Any = SimpleNamespace(store=store, application=US, prefix="file:///bronze/")
    return SliceChain.last_processed(chain, present)


@pytest.mark.parametrize(
    ("present", "last", "read"),
    [
        (("1", "9"), "10", ["11", "10"]),
        (("1", "9", "10"), "10", []),
        ((), "10", ["11", "10"]),
        (None, "10", ["11", "10"]),
    ],
)
def test_only_the_last_slice_that_has_left_bronze_is_read(
    present: tuple[str, ...] | None, last: str, read: list[str]
) -> None:
    items = [*(item(name, *PROCESSED) for name in ("1", "9", "10")), item("11", State.SKIPPED)]
    store: Any = Recorded(*items)
    there = None
    if present is not None:
        there = {each.item_id: each for each in items if slice_name(each) in present}
    place = last_processed(store, there)
    assert place == natural_key(last)
    assert [each.rpartition("/")[2] for each in store.read_ids] == read
    assert sort_pending([item("9b"), item("11")], US, last=place).late == {item("9b").item_id}
    assert place_of(item("10")) == place


def test_nothing_is_processed_yet() -> None:
    store: Any = Recorded(item("1"))
    assert last_processed(store) is None
    assert last_processed(store, {}) is None
