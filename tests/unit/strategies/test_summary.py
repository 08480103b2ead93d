"""`processing-strategies.md`, "Metrics": the identities hold or nothing is committed."""

from __future__ import annotations

import pytest

from lakewright.errors import MetricError
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.summary import Summary


@pytest.mark.parametrize(
    "summary",
    [
        Summary(Strategy.FULL, 3, inserted=3),
        Summary(Strategy.MERGE, 6, inserted=1, updated=2, deleted=3, changed=1, inferred_deletes=9),
        Summary(Strategy.MERGE, 9, inserted=1, superseded=5, outdated=3),  # A11
        Summary(Strategy.HISTORIC, 10, inserted=1, updated=2, unchanged=3, closed=4, deleted=9),
    ],
)
def test_numbers_that_add_up(summary: Summary) -> None:
    assert summary.checked() is summary
    assert Summary.from_json(summary.as_json()) == summary


@pytest.mark.parametrize(
    "summary",
    [
        Summary(Strategy.MERGE, 3, inserted=2),
        Summary(Strategy.HISTORIC, 1, deleted=1),
        Summary(Strategy.FULL, 1),
    ],
)
def test_numbers_that_do_not(summary: Summary) -> None:
    with pytest.raises(MetricError) as raised:
        summary.checked()
    assert raised.value.details["recordsInSlice"] == summary.records_in_slice


def test_metrics_have_the_missions_names() -> None:
    written = Summary(Strategy.MERGE, 1, inserted=1).as_json()
    assert {"recordsInSlice", "inserted", "updated", "deleted", "touched", "inferredDeletes"} <= set(written)
    assert written["touched"] == 0
