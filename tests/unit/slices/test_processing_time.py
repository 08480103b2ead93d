"""`processing-strategies.md`, "Processing Time Override", "Behavior"."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from lakewright.slices.process import parse_processing_time


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2025-05-05T12:00:00", "UTC", "2025-05-05T12:00:00+00:00"),
        ("2025-05-05T12:00:00", "Europe/Berlin", "2025-05-05T10:00:00+00:00"),
        ("2025-05-05T12:00:00Z", "Europe/Berlin", "2025-05-05T12:00:00+00:00"),
        ("2025-05-05T12:00:00.123456+05:45", "UTC", "2025-05-05T06:15:00.123456+00:00"),
        (" 2025-05-05 ", "Asia/Kathmandu", "2025-05-04T18:15:00+00:00"),
        ("2024-10-27T02:30:00", "Europe/Berlin", "2024-10-27T00:30:00+00:00"),
    ],
)
def test_times_are_instants(text: str, zone: str, expected: str) -> None:
    found = parse_processing_time(text, ZoneInfo(zone))
    assert found is not None
    assert found.isoformat() == expected


@pytest.mark.parametrize("text", ["", "now", "05.05.2025", "2025-13-01T00:00:00", "2025-05-05T25:00:00"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert parse_processing_time(text, ZoneInfo("UTC")) is None
