"""The state of a trigger, with a clock that is only a number."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from lakewright.spec.cron import due_times, find_zone
from lakewright.spec.models.trigger import Trigger
from lakewright.triggers.state import LONGEST_PAUSE, MOST_PENDING, Ending, Result, TriggerState, next_due

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR, MINUTE, DAY = timedelta(hours=1), timedelta(minutes=1), timedelta(days=1)


def trigger(**keys: Any) -> Trigger:
    cron = {} if "on" in keys else {"cron": "0 * * * *"}
    return Trigger.model_validate({"name": "t", "job": "j", "phase": "build", **cron, **keys})


def ended(state: TriggerState, result: Result, now: datetime) -> Ending:
    assert state.running is not None
    return Ending(state.running.due, state.running.started, now, result, "why")


def test_a_trigger_that_is_seen_for_the_first_time_has_missed_nothing() -> None:
    state = TriggerState().look(trigger(catch_up="all"), NOW)
    assert (state.pending, state.due(NOW)) == ((), None)


def test_a_time_that_passes_is_due_once() -> None:
    one = trigger()
    state = TriggerState().look(one, NOW).look(one, NOW + HOUR)
    assert state.due(NOW + HOUR) == NOW + HOUR
    started = state.start(NOW + HOUR).look(one, NOW + HOUR + MINUTE)
    assert started.due(NOW + HOUR + MINUTE) is None
    done = started.finish(one, ended(started, Result.SUCCEEDED, NOW + HOUR + MINUTE))
    assert done.look(one, NOW + HOUR + 2 * MINUTE).due(NOW + HOUR + 2 * MINUTE) is None


@pytest.mark.parametrize(
    ("catch_up", "hours"),
    [("none", []), ("last", [5]), ("all", [1, 2, 3, 4, 5])],
    ids=["none", "last", "all"],
)
def test_catch_up_decides_about_times_missed_while_no_server_ran(catch_up: str, hours: list[int]) -> None:
    one = trigger(catch_up=catch_up)
    state = TriggerState().look(one, NOW).look(one, NOW + 5 * HOUR + 30 * MINUTE)
    assert state.pending == tuple(NOW + hour * HOUR for hour in hours)


def test_without_catch_up_a_time_that_a_living_server_sees_is_not_missed() -> None:
    one = trigger(catch_up="none")
    state = TriggerState().look(one, NOW).look(one, NOW + HOUR + timedelta(seconds=2))
    assert state.pending == (NOW + HOUR,)


def test_of_a_long_absence_the_newest_times_are_remembered() -> None:
    one = trigger(cron="* * * * *", catch_up="all")
    state = TriggerState().look(one, NOW).look(one, NOW + 400 * DAY)
    assert len(state.pending) == MOST_PENDING
    assert state.pending[-1] == NOW + 400 * DAY
    assert {after - before for before, after in pairwise(state.pending)} == {MINUTE}


def test_while_a_run_lasts_the_next_is_remembered_once() -> None:
    one = trigger()
    state = TriggerState().look(one, NOW).look(one, NOW + HOUR).start(NOW + HOUR)
    for hour in (2, 3, 4):
        state = state.look(one, NOW + hour * HOUR)
        assert state.due(NOW + hour * HOUR) is None
    state = state.finish(one, ended(state, Result.SUCCEEDED, NOW + 4 * HOUR))
    assert state.due(NOW + 4 * HOUR) == NOW + 4 * HOUR
    assert state.start(NOW + 4 * HOUR).pending == ()


def test_a_clock_set_back_a_little_repeats_no_run() -> None:
    one = trigger()
    state = TriggerState().look(one, NOW).look(one, NOW + HOUR).start(NOW + HOUR)
    state = state.finish(one, ended(state, Result.SUCCEEDED, NOW + HOUR))
    assert state.look(one, NOW + 30 * MINUTE).look(one, NOW + HOUR).due(NOW + HOUR) is None


def test_after_a_clock_that_was_a_year_ahead_the_schedule_goes_on() -> None:
    one = trigger()
    state = TriggerState().look(one, NOW + 365 * DAY).look(one, NOW)
    assert state.look(one, NOW + HOUR).due(NOW + HOUR) == NOW + HOUR


def test_another_schedule_has_missed_nothing() -> None:
    state = TriggerState().look(trigger(), NOW)
    later = state.look(trigger(cron="*/5 * * * *"), NOW + DAY)
    assert later.pending == ()


def test_a_retryable_failure_is_retried_with_growing_pauses() -> None:
    one, now, pauses = trigger(), NOW + HOUR, []
    state = TriggerState().look(one, NOW).look(one, now)
    for _ in range(12):
        state = state.start(now)
        state = state.finish(one, ended(state, Result.RETRY, now))
        assert state.retry_at is not None
        assert state.due(state.retry_at - timedelta(seconds=1)) is None
        assert state.due(state.retry_at) is not None
        pauses.append(state.retry_at - now)
        now = state.retry_at
    assert pauses == sorted(pauses)
    assert pauses[0] < 10 * timedelta(seconds=1)
    assert pauses[-1] == LONGEST_PAUSE


def test_a_retry_planned_before_the_clock_was_set_back_does_not_wait_for_it() -> None:
    one = trigger(on="arrival", of="e")
    state = TriggerState().observe("a", NOW).start(NOW, "a")
    state = state.finish(one, ended(state, Result.RETRY, NOW))
    assert state.due(NOW - DAY) == NOW


def test_another_failure_waits_for_the_operator_and_the_next_time_runs() -> None:
    one = trigger()
    state = TriggerState().look(one, NOW).look(one, NOW + HOUR).start(NOW + HOUR)
    state = state.finish(one, ended(state, Result.FAILED, NOW + HOUR))
    assert (state.waits, state.due(NOW + HOUR + 30 * MINUTE)) == ("why", None)
    assert state.ask(NOW + HOUR + MINUTE).due(NOW + HOUR + MINUTE) is not None
    assert state.look(one, NOW + 2 * HOUR).due(NOW + 2 * HOUR) == NOW + 2 * HOUR


def test_an_event_that_failed_is_not_repeated_until_something_changes() -> None:
    one = trigger(on="arrival", of="e")
    state = TriggerState().observe("slice 1", NOW).start(NOW, "slice 1")
    state = state.finish(one, ended(state, Result.FAILED, NOW))
    assert state.observe("slice 1", NOW + MINUTE).due(NOW + MINUTE) is None
    assert state.observe("slices 1, 2", NOW + MINUTE).due(NOW + MINUTE) == NOW + MINUTE
    # The slice failed, so that nothing was ready; then the operator has resolved it.
    resolved = state.observe("", NOW + MINUTE).observe("slice 1", NOW + 2 * MINUTE)
    assert resolved.due(NOW + 2 * MINUTE) == NOW + 2 * MINUTE


def test_work_that_is_gone_before_its_run_starts_starts_none() -> None:
    state = TriggerState().observe("slice 1", NOW).observe("", NOW)
    assert state.due(NOW) is None


def test_a_run_that_an_operator_asks_for_starts_although_there_is_nothing_to_do() -> None:
    state = TriggerState().observe("", NOW).ask(NOW).observe("", NOW)
    assert state.due(NOW) == NOW
    assert not state.start(NOW, "").is_asked


def test_a_retry_ends_when_others_have_done_the_work() -> None:
    one = trigger(on="arrival", of="e")
    state = TriggerState().observe("slice 1", NOW).start(NOW, "slice 1")
    state = state.finish(one, ended(state, Result.RETRY, NOW)).observe("", NOW)
    assert (state.failures, state.retry_at, state.pending) == (0, None, ())
    assert state.observe("slice 2", NOW + MINUTE).due(NOW + MINUTE) == NOW + MINUTE


def test_what_was_processed_before_the_first_look_counts_as_done() -> None:
    state = TriggerState().observe("7 slices", NOW, is_baseline=True)
    assert state.due(NOW) is None
    assert state.observe("8 slices", NOW, is_baseline=True).due(NOW) == NOW


def test_a_paused_trigger_starts_nothing_and_remembers_the_next() -> None:
    one = trigger()
    state = TriggerState(is_paused=True).look(one, NOW).look(one, NOW + HOUR)
    assert state.due(NOW + HOUR) is None
    assert state.pending == (NOW + HOUR,)


def test_a_run_whose_server_ended_is_repeated() -> None:
    one = trigger()
    state = TriggerState().look(one, NOW).look(one, NOW + HOUR).start(NOW + HOUR)
    again = TriggerState.from_json(state.as_json()).interrupt(one, NOW + HOUR)
    assert again.running is None
    assert again.due(NOW + HOUR + MINUTE) == NOW + HOUR
    assert again.last is not None
    assert "was stopped or killed during" in again.last.message


def test_the_next_time_is_that_of_the_schedule() -> None:
    assert next_due(trigger(), NOW) == NOW + HOUR
    assert next_due(trigger(on="processed", of="e"), NOW) is None


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["tick", "tick", "tick", "jump", "back", "succeed", "retry", "fail", "die"]),
        st.integers(1, 180),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(steps=STEPS, catch_up=st.sampled_from(["none", "last", "all"]))
def test_whatever_happens_one_run_at_a_time_starts_for_real_times_and_none_succeeds_twice(
    steps: list[tuple[str, int]], catch_up: str
) -> None:
    one = trigger(cron="*/20 * * * *", catch_up=catch_up, timezone="Europe/Amsterdam")
    now, state, succeeded, newest = NOW, TriggerState().look(one, NOW), [], NOW
    for what, minutes in steps:
        if what == "back":
            now -= minutes * timedelta(seconds=10)
        elif what in ("tick", "jump"):
            now += minutes * (timedelta(seconds=20) if what == "tick" else MINUTE)
        elif what == "die":
            state = TriggerState.from_json(state.as_json()).interrupt(one, now)
        elif state.running is not None:
            result = {"succeed": Result.SUCCEEDED, "retry": Result.RETRY, "fail": Result.FAILED}[what]
            if result is Result.SUCCEEDED:
                succeeded.append(state.running.due)
            state = state.finish(one, ended(state, result, now))
        newest = max(newest, now)
        state = state.look(one, now)
        if (due := state.due(now)) is not None:
            assert state.running is None
            assert due <= newest
            assert due in due_times_between(one, due - MINUTE, due)
            state = state.start(now)
        assert TriggerState.from_json(state.as_json()) == state
        assert catch_up == "all" or len(state.pending) <= 1
    assert len(succeeded) == len(set(succeeded))


@settings(max_examples=examples(20), deadline=None)
@given(gaps=st.lists(st.integers(1, 200), min_size=1, max_size=8))
def test_with_catch_up_all_every_time_runs_once_and_in_order(gaps: list[int]) -> None:
    one = trigger(cron="*/20 * * * *", catch_up="all")
    now, state, ran = NOW, TriggerState().look(one, NOW), []
    for gap in gaps:
        now += gap * MINUTE
        state = TriggerState.from_json(state.as_json()).look(one, now)
        while (due := state.due(now)) is not None:
            ran.append(due)
            state = state.start(now)
            state = state.finish(one, ended(state, Result.SUCCEEDED, now))
    assert ran == due_times_between(one, NOW, now)


def due_times_between(one: Trigger, after: datetime, until: datetime) -> list[datetime]:
    found: list[datetime] = []
    for at in due_times(one.cron or "", find_zone(one.timezone), after):
        if at > until:
            return found
        found.append(at)
    return found
