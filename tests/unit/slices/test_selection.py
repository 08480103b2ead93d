"""D1: a target takes the slices of a pattern, or those up to a name."""

from __future__ import annotations

import pytest
from tests.unit.slices.test_pending import FAILED, PROCESSED, US, item, names

from lakewright.slices.context import ALL_SLICES, SliceSelection
from lakewright.slices.discovery import natural_key
from lakewright.slices.pending_slices import sort_pending

DAYS = ("2024-05-01.json", "2024-05-02.json", "2024-05-02-late.json", "2024-05-10.json")


@pytest.mark.parametrize(
    ("selection", "taken"),
    [
        (ALL_SLICES, DAYS),
        (SliceSelection("2024-05-02*"), ("2024-05-02.json", "2024-05-02-late.json")),
        (SliceSelection("2024-05-0?.json"), ("2024-05-01.json", "2024-05-02.json")),
        (SliceSelection("2024-05-02"), ()),
        (SliceSelection(until="2024-05-02"), DAYS[:3]),
        (SliceSelection(until="2024-05-1"), DAYS[:1]),
        (SliceSelection(until="2024-5-2"), DAYS[:3]),
        (SliceSelection(until="2024-04"), ()),
        (SliceSelection("*late*", until="2024-05-02"), ("2024-05-02-late.json",)),
    ],
)
def test_a_selection_takes_names_by_pattern_and_up_to_a_name(
    selection: SliceSelection, taken: tuple[str, ...]
) -> None:
    assert tuple(filter(selection.takes, DAYS)) == taken


@pytest.mark.parametrize("until", ["s9", "s", "s9b", "a10", "10"])
def test_no_name_that_is_left_comes_before_one_that_is_taken(until: str) -> None:
    names = sorted(["s9", "s90", "s9b", "s09", "s10", "sa", "a10", "a10.x", "10", "9", "z"], key=natural_key)
    taken = [SliceSelection(until=until).takes(name) for name in names]
    assert taken == sorted(taken, reverse=True)


def test_items_that_are_not_taken_are_left_to_others() -> None:
    pending = sort_pending([item("a1"), item("a2"), item("b1"), item("b2", *PROCESSED)], US)

    found = pending.taken_by(SliceSelection("b*"))

    assert (names(found.ready), names(found.others)) == (["b1"], ["a1", "a2"])
    assert names(found.overtaken()) == ["a1", "a2"]
    assert names(pending.taken_by(SliceSelection("a1")).overtaken()) == []
    assert pending.taken_by(ALL_SLICES) is pending


@pytest.mark.parametrize(
    ("pattern", "is_held"), [("1", False), ("2", True), ("3", True), ("[23]", True), ("9", False)]
)
def test_a_failed_item_that_is_not_taken_holds_only_what_waits_for_it(pattern: str, is_held: bool) -> None:
    pending = sort_pending([item("1"), item("2", *FAILED), item("3")], US)

    assert (pending.taken_by(SliceSelection(pattern)).held is not None) is is_held
