"""Slices that are still being written: their files have changed a moment ago."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lakewright.errors import SpecError
from lakewright.lake.paths import FileEntry
from lakewright.slices.discovery import SETTLE, Listing, Slice, settle_of, without_unsettled

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SETTLE_TIME = timedelta(seconds=2)


def slice_(name: str, age: float, *, marks: frozenset[str] = frozenset(), per_second: int = 10**9) -> Slice:
    modified = int((NOW.timestamp() - age) * per_second)
    return Slice(name, f"/bronze/{name}", (FileEntry(name, 10, modified),), marks)


def listed(*slices: Slice) -> Listing:
    return without_unsettled(Listing(slices), SETTLE_TIME, NOW)


def test_a_slice_that_changed_a_moment_ago_is_not_complete() -> None:
    found = listed(slice_("a", 60), slice_("b", 1.5), slice_("c", 2.5))
    assert [each.name for each in found.slices] == ["a", "c"]
    assert found.incomplete == ("b",)
    assert found.unsettled == {"b"}


def test_times_in_milliseconds_count_as_well() -> None:
    assert listed(slice_("a", 1, per_second=1000)).unsettled == {"a"}
    assert listed(slice_("a", 3, per_second=1000)).unsettled == frozenset()


def test_success_completes_a_slice_at_once() -> None:
    assert listed(slice_("a", 0, marks=frozenset({"_SUCCESS"}))).unsettled == frozenset()


def test_a_file_from_the_future_does_not_wait_for_it() -> None:
    assert listed(slice_("a", -3600)).unsettled == frozenset()


def test_without_the_configuration_every_slice_is_complete() -> None:
    assert settle_of({}) == timedelta()
    assert settle_of({SETTLE: "500ms"}) == timedelta(milliseconds=500)
    with pytest.raises(SpecError, match="soon"):
        settle_of({SETTLE: "soon"})
