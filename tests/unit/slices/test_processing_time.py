"""`processing-strategies.md`, "Processing Time Override", "Behavior"."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from lakewright.errors import UsageError
from lakewright.manifest.record import parse_instant_in
from lakewright.slices.processing_time import ProcessingTimes
from lakewright.spec.expressions.scope import Entry, Scope


def times(text: str | None, *, is_lenient: bool = False, said: list[str] | None = None) -> ProcessingTimes:
    warn = (said if said is not None else []).append
    return ProcessingTimes(text, ZoneInfo("Europe/Berlin"), Scope({"day": "2024-05-01"}), is_lenient, warn)


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
    found = parse_instant_in(text, ZoneInfo(zone))
    assert found is not None
    assert found.isoformat() == expected


@pytest.mark.parametrize("text", ["", "now", "05.05.2025", "2025-13-01T00:00:00", "2025-05-05T25:00:00"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert parse_instant_in(text, ZoneInfo("UTC")) is None


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("${slice.date}", "sales-2024-05-03.parquet", "2024-05-02T22:00:00+00:00"),
        ("${slice.date}T06:00:00Z", "20240503", "2024-05-03T06:00:00+00:00"),
        ("$slice.date('dd.MM.yy')", "a 03.05.24.csv", "2024-05-02T22:00:00+00:00"),
        ("${slice.date(\"yyyyMMdd'T'HHmm\")}", "x-20240503T0630", "2024-05-03T04:30:00+00:00"),
        ("${slice.name.substring(0, 10)}T01:00:00Z", "2024-05-03.csv", "2024-05-03T01:00:00+00:00"),
        ("$day", "s1", "2024-04-30T22:00:00+00:00"),
    ],
)
def test_a_time_may_be_an_expression_over_the_slice(text: str, name: str, expected: str) -> None:
    """A7: each slice of a backfill is stamped by its own day."""
    found = times(text).at(name)
    assert found is not None
    assert found.isoformat() == expected


@pytest.mark.parametrize(
    ("text", "name", "told"),
    [
        ("2024/05/01", "s1", "the processing time '2024/05/01' is not ISO 8601"),
        ("${slice.name}", "s1", "the processing time 's1' of slice s1 is not ISO 8601"),
        ("${slice.date}", "s1", "has no value for the slice s1: its name has no date such as 2024-05-01"),
        ("$slice.date('yyyyMMdd')", "s1", "the name 's1' has no date of the form 'yyyyMMdd'"),
        ("$slice.date('yyyyMM')", "202401", "lacks the year, the month or the day"),
        ("${slice.date}", "2024-13-45", "its name has no date such as 2024-05-01"),
        ("$dya", "s1", "unknown name 'dya'"),
    ],
)
def test_what_gives_no_time_is_an_error(text: str, name: str, told: str) -> None:
    """A5, A7: history must not be stamped wrongly."""
    with pytest.raises(UsageError) as raised:
        times(text).at(name)
    assert told in raised.value.message


def test_a_file_without_a_date_in_its_name_is_told_to_be_skipped_or_to_name_its_form() -> None:
    """It was told to be removed from bronze, after which the manifest's record still held the others back."""
    with pytest.raises(UsageError) as raised:
        times("${slice.date}").at("Thumbs.db")
    assert raised.value.remedy == (
        "Name the form of the dates, as in ${slice.date('dd.MM.yyyy')}. If it is no slice, or comes again "
        "under another name: `lakewright manifest skip ENTITY/Thumbs.db`."
    )


def test_only_the_option_of_processing_falls_back_to_the_present() -> None:
    """A5: the fallback of Datalake Foundation, with its warning."""
    said: list[str] = []
    lenient = times("2024/05/01", is_lenient=True, said=said)
    assert lenient.at("s1") is None
    assert lenient.check_readable() == said[0]
    assert "is not ISO 8601; the current time is used" in said[0]


def test_times_of_several_slices_follow_their_order() -> None:
    """A7: a constant for several slices is refused, and so is an order that history cannot have."""
    times("${slice.date}").check_order(["2024-05-01", "2024-05-02"], "orders")
    times(None).check_order(["s1", "s2"], "orders")
    times("2024-05-01").check_order(["s1"], "orders")
    with pytest.raises(UsageError, match="one processing time is given for 2 pending slices"):
        times("$day").check_order(["s1", "s2"], "orders")
    with pytest.raises(
        UsageError, match="of slice b-2024-05-01 is not later than that of slice a-2024-05-01"
    ):
        times("${slice.date}").check_order(["a-2024-05-01", "b-2024-05-01"], "orders")


@pytest.mark.parametrize("text", ["${t}", "$t", "${t.plusHours(0)}", "$alias", "${t}Z"])
def test_a_timestamp_keeps_its_instant_in_any_zone_of_the_lake(text: str) -> None:
    """`${t}` renders in UTC without an offset; a text without an offset is in the lake's zone."""
    at = datetime(2024, 5, 1, 10, tzinfo=UTC)
    scope = Scope({"alias": Entry("${t}")}).instance({}, {"t": at})
    zone = ZoneInfo("Europe/Amsterdam")
    assert ProcessingTimes(text, zone, scope, False, print).at("1") == at
    local = scope.child({"t": datetime(2024, 5, 1, 12)})
    assert ProcessingTimes("${t}", zone, local, False, print).at("1") == at
