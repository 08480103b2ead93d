"""Times without an offset in frames of pandas: each must be one instant in the lake's zone."""

from __future__ import annotations

import pandas as pd
import pytest

from lakewright.errors import UsageError
from lakewright.lake.frames import arrow_table, check_plain_times

ZONE = "Europe/Amsterdam"


def at(*times: str | None) -> pd.DataFrame:
    return pd.DataFrame({"id": range(len(times)), "seen at": pd.to_datetime(pd.Series(times))})


@pytest.mark.parametrize(
    ("time", "told"),
    [
        ("2024-10-27 02:30", "column 'seen at': 2024-10-27 02:30:00 occurs twice in Europe/Amsterdam"),
        ("2024-03-31 02:30", "column 'seen at': 2024-03-31 02:30:00 does not exist in Europe/Amsterdam"),
    ],
)
def test_a_time_that_is_no_single_instant_is_told_with_its_column(time: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_plain_times(arrow_table(at("2024-05-01 00:00", None, time)), ZONE)
    assert refused.value.message == told
    assert "tz_localize" in str(refused.value.remedy)


def test_other_times_are_accepted() -> None:
    check_plain_times(arrow_table(at("2024-10-27 03:30", None, "2024-03-31 03:00")), ZONE)
    check_plain_times(arrow_table(at("2024-10-27 02:30")), "UTC")
    with_offset = at("2024-10-27 00:30")
    with_offset["seen at"] = with_offset["seen at"].dt.tz_localize("UTC")
    check_plain_times(arrow_table(with_offset), ZONE)
