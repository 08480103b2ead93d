"""Values are bound typed, never spliced as text."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from lakewright.strategies.slice_statistics import value_sql

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
