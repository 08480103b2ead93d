"""Values of parameters and expressions, read and written."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.spec.expressions.date_patterns import format_moment
from lakewright.spec.expressions.values import Duration, ValueType, parse_value, render_value


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", " NO ", " NO "),
        ("text", "0100", "0100"),
        ("integer", "0100", 100),
        ("Integer", "-3", -3),
        ("BIGINT", " 12 ", 12),
        ("float", "1.50", 1.5),
        ("double", "1e3", 1000.0),
        ("decimal(10,2)", "1.50", Decimal("1.50")),
        ("boolean", "NO", False),
        ("bool", "True", True),
        ("date", "2022-11-01", date(2022, 11, 1)),
        ("date", "2022-11-01T23:59:59Z", date(2022, 11, 1)),
        ("timestamp", "2022-11-01", datetime(2022, 11, 1, tzinfo=UTC)),
        ("timestamp", "2022-11-01T06:00", datetime(2022, 11, 1, 6, tzinfo=UTC)),
        ("timestamp", "2022-11-01 06:00:00.5", datetime(2022, 11, 1, 6, 0, 0, 500_000, tzinfo=UTC)),
        ("timestamp", "2022-11-01T06:00:00.123456789Z", datetime(2022, 11, 1, 6, 0, 0, 123_456, tzinfo=UTC)),
        ("timestamp", "2022-11-01T06:00:00+05:45", datetime(2022, 11, 1, 0, 15, tzinfo=UTC)),
        ("timestamp", "2022-11-01T06:00:00-0800", datetime(2022, 11, 1, 14, tzinfo=UTC)),
        ("duration", "P1D", Duration(days=1)),
        ("duration", "p1y2m", Duration(months=14)),
        ("duration", "P2W", Duration(days=14)),
        ("duration", "PT15M", Duration(microseconds=900_000_000)),
        ("duration", "PT1H30M5.25S", Duration(microseconds=5_405_250_000)),
        ("duration", "-P1M", Duration(months=-1)),
        ("duration", "P-1D", Duration(days=-1)),
    ],
)
def test_a_text_is_read_as_its_type(kind: str, text: str, value: Any) -> None:
    assert parse_value(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(("integer", text) for text in ("", "1.0", "1e3", "0x10", "1_000", "९", "9" * 100)),
        *(("float", text) for text in ("", "nan", "inf", "1,5", "1e9999", "one")),
        *(("boolean", text) for text in ("", "2", "ja")),
        *(
            ("date", text)
            for text in ("", "2022-13-01", "2022-02-30", "20221101", "1.11.2022", "2022-11-01x")
        ),
        *(
            ("timestamp", text)
            for text in ("", "now", "2022-11-01T25:00", "2022-11-01T06", "2022-11-01T06:00 CET")
        ),
        *(("duration", text) for text in ("", "P", "PT", "1D", "P1DT", "P1H", "PT1D", "P1.5D", "P1D ago")),
        ("interval", "P1D"),
        ("", "x"),
    ],
)
def test_what_is_no_value_of_its_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_value(kind, text)


@pytest.mark.parametrize(
    ("start", "duration", "end"),
    [
        (date(2022, 1, 31), "P1M", date(2022, 2, 28)),
        (date(2024, 1, 31), "P1M", date(2024, 2, 29)),
        (date(2024, 2, 29), "P1Y", date(2025, 2, 28)),
        (date(2022, 3, 31), "-P1M", date(2022, 2, 28)),
        (date(2022, 1, 31), "P2M", date(2022, 3, 31)),
        (date(2022, 12, 31), "P1D", date(2023, 1, 1)),
        (date(2022, 12, 31), "PT24H", date(2023, 1, 1)),
        (datetime(2022, 1, 31, 6), "P1MT1H", datetime(2022, 2, 28, 7)),
        (datetime(2022, 1, 1, tzinfo=UTC), "PT15M", datetime(2022, 1, 1, 0, 15, tzinfo=UTC)),
    ],
)
def test_a_duration_leads_from_a_date_to_a_date(start: date, duration: str, end: date) -> None:
    assert Duration.parse(duration).after(start) == end


def test_months_have_no_exact_length() -> None:
    assert Duration.parse("P1DT1H").exact == timedelta(hours=25)
    with pytest.raises(ValueError, match="months"):
        _ = Duration(months=1).exact


@given(st.builds(Duration, *(st.integers(-(10**6), 10**6) for _ in range(3))))
def test_a_duration_reads_back_from_its_text(duration: Duration) -> None:
    assert Duration.parse(str(duration)) == duration


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (3, "3"),
        (1.0, "1.0"),
        (Decimal("1.50"), "1.50"),
        (date(2022, 11, 1), "2022-11-01"),
        (datetime(2022, 11, 1, 6), "2022-11-01T06:00"),
        (datetime(2022, 11, 1, 6, 0, 1), "2022-11-01T06:00:01"),
        (datetime(2022, 11, 1, 6, 0, 1, 500_000), "2022-11-01T06:00:01.500"),
        (datetime(2022, 11, 1, 6, tzinfo=UTC), "2022-11-01T06:00:00.0"),
        (datetime(2022, 11, 1, 6, 0, 0, 120_000, tzinfo=UTC), "2022-11-01T06:00:00.12"),
        (Duration(days=1), "P1D"),
        (Duration(microseconds=86_400_000_000), "PT24H"),
        (Duration(), "PT0S"),
    ],
)
def test_a_value_is_written_as_flowman_does(value: object, text: str) -> None:
    assert render_value(value) == text


@given(st.datetimes(min_value=datetime(1000, 1, 1)))
def test_an_instant_reads_back_from_its_text(moment: datetime) -> None:
    instant = moment.replace(tzinfo=UTC)
    assert parse_value(ValueType.TIMESTAMP, render_value(instant)) == instant


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd", "2022-03-05"),
        ("yy.M.d", "22.3.5"),
        ("uuuu/DDD/Q/QQQ", "2022/064/1/Q1"),
        ("MMM MMMM MMMMM", "Mar March M"),
        ("E EEEE", "Sat Saturday"),
        ("HH:mm:ss.SSS", "14:07:09.012"),
        ("H h K k a", "14 2 2 14 PM"),
        ("'year' yyyy''yy", "year 2022'22"),
        ("yyyy'T'HH", "2022T14"),
        ("X x Z XXX", "Z +00 +0000 Z"),
    ],
)
def test_javas_patterns_write_dates_and_times(pattern: str, text: str) -> None:
    assert format_moment(datetime(2022, 3, 5, 14, 7, 9, 12_345, tzinfo=UTC), pattern) == text
