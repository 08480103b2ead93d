"""What is named for late slices harms no later rows, and leads somewhere."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from lakewright.errors import SpecError
from lakewright.slices.late_advice import LateSlices, find_late_slices
from lakewright.spec.models.entity import Strategy
from lakewright.spec.models.entity_settings import EntitySettings

ENTITY: Any = SimpleNamespace(
    called="stock",
    strategy=Strategy.HISTORIC,
    settings=SimpleNamespace(sequence_by=None),
    partition_columns=(),
)
ORDERED = {"sequence_by": "changed_at", "delete_missing": False, "delete_scope": "full"}
MERGED: Any = SimpleNamespace(called="stock", strategy=Strategy.MERGE, partition_columns=())
PLACEMENT: Any = SimpleNamespace(has_place=lambda name, at: at is not None, newest=lambda: "2999-01-01.csv")
UNDATED, DATED = "2024-02-31.csv", "2024-05-08b.csv"


def date_of(name: str) -> datetime:
    if name == UNDATED:
        raise SpecError.of("the name has no date")
    return datetime(2024, 5, 8, tzinfo=UTC)


def late(*names: str) -> LateSlices:
    return find_late_slices(ENTITY, names, PLACEMENT, date_of, Strategy.HISTORIC)


@pytest.mark.parametrize(
    ("names", "remedy"),
    [
        (
            (DATED,),
            f"`lakewright rebuild stock --include {DATED}` puts it in its place, "
            f"`lakewright manifest skip stock/{DATED}` leaves it out",
        ),
        (
            (UNDATED,),
            f"its name tells no processing time: `lakewright manifest skip stock/{UNDATED}`",
        ),
    ],
)
def test_a_late_slice_whose_name_tells_no_time_is_skipped(names: tuple[str, ...], remedy: str) -> None:
    """`requeue --late` was named, which no run took."""
    assert late(*names).remedy == remedy
    assert late(*names).command in remedy


def test_the_processed_slice_that_makes_others_late_is_named() -> None:
    """It may be one with a wrong date, which nobody else tells any more."""
    assert late(DATED).words == "older than 2999-01-01.csv, which is already processed"


def test_slices_with_and_without_a_time_are_told_apart() -> None:
    both = late(UNDATED, DATED)
    assert both.remedy == f"{late(DATED).remedy}; {UNDATED}: {late(UNDATED).remedy}"
    assert both.only(UNDATED).command == f"lakewright manifest skip stock/{UNDATED}"
    assert both.only(DATED).command == f"lakewright rebuild stock --include {DATED}"
    assert late(UNDATED).remedy_of_failed == f"{late(UNDATED).remedy}."


@pytest.mark.parametrize(
    ("settings", "is_dated", "remedy"),
    [
        ({}, True, "{requeue} applies it, {skip} leaves it out"),
        (
            {"delete_missing": True},
            True,
            "{rebuild} puts it in its place, {skip} leaves it out, {requeue} may bring back records that "
            "later slices lack",
        ),
        (
            {"delete_missing": True},
            False,
            "{requeue} applies it and may bring back records that later slices lack, {skip} leaves it out",
        ),
        (
            {"delete_missing": True, "delete_scope": "closed"},
            True,
            "{requeue} applies it, {skip} leaves it out",
        ),
    ],
)
def test_with_inferred_deletes_an_ordered_slice_needs_its_place_too(
    settings: dict[str, Any], is_dated: bool, remedy: str
) -> None:
    """`sequence_by` orders rows, but a record that a later slice lacks has no row there: it came back."""
    entity: Any = SimpleNamespace(**vars(MERGED), settings=EntitySettings(**{**ORDERED, **settings}))
    declared = date_of if is_dated else (lambda _: None)
    found = find_late_slices(entity, (DATED,), PLACEMENT, declared, Strategy.MERGE)
    typed = {
        "rebuild": f"`lakewright rebuild stock --include {DATED}`",
        "requeue": f"`lakewright manifest requeue stock/{DATED} --late`",
        "skip": f"`lakewright manifest skip stock/{DATED}`",
    }
    assert found.remedy == remedy.format(**typed)
    assert found.may_bring_back is ("may bring back" in remedy)
    assert (found.warning is not None) is found.may_bring_back
