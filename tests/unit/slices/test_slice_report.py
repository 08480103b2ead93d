"""The line of the log for a slice that has ended."""

from __future__ import annotations

import pytest

from lakewright.slices.result import SliceReport, SliceResult
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.summary import Summary


@pytest.mark.parametrize(
    ("summary", "told"),
    [
        (
            Summary(
                Strategy.MERGE, records_in_slice=3, inserted=1, updated=1, inferred_deletes=2, quarantined=1
            ),
            "by merge in 0.0 s: records_in_slice 3, inserted 1, updated 1, inferred_deletes 2, quarantined 1",
        ),
        (
            Summary(Strategy.HISTORIC, records_in_slice=1, inserted=1, deleted=2, inferred_deletes=2),
            "by historic in 0.0 s: records_in_slice 1, inserted 1, deleted 2",
        ),
        (Summary(Strategy.FULL), "by full in 0.0 s: no records"),
    ],
)
def test_each_count_that_is_not_zero_is_told_once(summary: Summary, told: str) -> None:
    report = SliceReport("orders", "s1", "file:///s1", SliceResult("s1", "file:///s1", summary))
    assert str(report) == f"orders: slice s1 processed {told}"
    assert not report.is_failed
