"""Cron times: daylight saving, aliases, and what is refused."""

from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.spec.cron import check_cron, due_times, find_zone

AMSTERDAM = ZoneInfo("Europe/Amsterdam")


def times(cron: str, start: str, number: int) -> list[str]:
    after = datetime.fromisoformat(start).replace(tzinfo=AMSTERDAM)
    found = islice(due_times(cron, AMSTERDAM, after), number)
    return [at.astimezone(AMSTERDAM).isoformat(timespec="minutes") for at in found]


def test_a_time_in_the_gap_of_spring_is_due_at_the_end_of_the_gap() -> None:
    assert times("30 2 * * *", "2026-03-28T12:00", 2) == ["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"]


def test_a_time_that_autumn_repeats_is_due_once() -> None:
    assert times("30 2 * * *", "2026-10-24T12:00", 2) == ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]


def test_an_expression_of_each_hour_follows_elapsed_time_through_both_changes() -> None:
    assert times("0 * * * *", "2026-03-29T00:30", 3) == [
        "2026-03-29T01:00+01:00",
        "2026-03-29T03:00+02:00",
        "2026-03-29T04:00+02:00",
    ]
    assert times("0 * * * *", "2026-10-25T01:30", 3) == [
        "2026-10-25T02:00+02:00",
        "2026-10-25T02:00+01:00",
        "2026-10-25T03:00+01:00",
    ]


@settings(deadline=None)
@given(
    cron=st.sampled_from(["30 2 * * *", "*/7 * * * *", "0 */2 * * *", "15 3 * * 1-5", "0 0 1 * *"]),
    start=st.integers(0, 400 * 24 * 60),
)
def test_due_times_grow_and_lie_after_the_start_wherever_it_is(cron: str, start: int) -> None:
    after = datetime.fromtimestamp(1_760_000_000 + 60 * start, UTC)
    found = list(islice(due_times(cron, AMSTERDAM, after), 4))
    assert found == sorted(set(found))
    assert found[0] > after


def test_aliases_mean_what_they_mean_to_cron() -> None:
    assert times("@daily", "2026-01-01T12:00", 1) == ["2026-01-02T00:00+01:00"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("15 3 * *", "five fields"),
        ("0 15 3 * * *", "five fields"),
        ("61 3 * * *", "bad minute"),
        ("0 0 31 2 *", "not a cron expression|never due"),
        ("often", "five fields"),
    ],
)
def test_a_text_that_is_no_cron_expression_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_cron(text)


@pytest.mark.parametrize("name", ["Europe/Amsterdm", "", "../UTC", "/etc/passwd", "posix/UTC", "localtime"])
def test_an_unknown_time_zone_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="time zone"):
        find_zone(name)
