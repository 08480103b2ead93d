"""Values are bound typed, never spliced as text; ranges of integers are rounded outwards."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.strategies.slice_statistics import Range, range_condition, value_sql

EAST = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (5, "bigint", "cast('5' as bigint)"),
        (Decimal("1.50"), "decimal(10,2)", "cast('1.50' as decimal(10,2))"),
        ("' OR 1=1 --", "string", "cast('\\' OR 1=1 --' as string)"),
        (date(2024, 5, 1), "timestamp", "cast(cast('2024-05-01' as date) as timestamp)"),
        (
            datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
            "timestamp",
            "cast(timestamp_micros(0) as timestamp)",
        ),
        (datetime(1970, 1, 1, 0, 0, 0, 7, tzinfo=UTC), "date", "cast(timestamp_micros(7) as date)"),
        (datetime(2024, 1, 1, tzinfo=UTC), "timestamp_ntz", "cast('2024-01-01 00:00:00' as timestamp_ntz)"),
    ],
)
def test_values_as_sql(value: object, kind: str, expected: str) -> None:
    assert value_sql(value, kind) == expected


def bounds(low: int, high: int, kind: str) -> tuple[int, int]:
    sql = range_condition({"id": Range(low, high, has_null=False)}, {"id": kind}, alias="t")
    least, most = re.findall(r"cast\('(-?\d+)' as", sql)
    return int(least), int(most)


@pytest.mark.parametrize("bits", [31, 63])
@given(data=st.data())
def test_rounded_ranges_hold_all_values_and_little_more(bits: int, data: st.DataObject) -> None:
    values = st.integers(-(1 << bits), (1 << bits) - 1)
    low, high = sorted((data.draw(values), data.draw(values)))
    least, most = bounds(low, high, "int" if bits == 31 else "bigint")
    assert -(1 << bits) <= least <= low <= high <= most < 1 << bits
    assert (low - least) + (most - high) <= (high - low) / 16


@pytest.mark.parametrize(("kind", "high"), [("smallint", 30_001), ("int", 127), ("decimal(10,0)", 30_001)])
def test_other_types_and_short_ranges_are_exact(kind: str, high: int) -> None:
    assert bounds(1, high, kind) == (1, high)


def test_slices_of_about_the_same_keys_have_one_condition() -> None:
    assert bounds(2, 119_843, "bigint") == bounds(17, 119_990, "bigint") == (0, 120_832)
