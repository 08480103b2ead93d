"""The scheduler over a store in memory, with a clock that the tests move."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakewright.errors import StorageUnavailable
from lakewright.manifest.lease import Holder, Leases
from lakewright.spec.models.trigger import Trigger
from lakewright.stores.memory import MemoryStore
from lakewright.triggers.records import Lane, TriggerRecords
from lakewright.triggers.scheduler import Scheduler
from lakewright.triggers.state import Attempt, Ending, Result, TriggerState

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
LEASE = timedelta(seconds=30)


class Looks:
    """What triggers wait for, as a test sets it."""

    def __init__(self) -> None:
        self.marks: dict[str, str | None] = {}
        self.done: dict[str, str] = {}
        self.error: StorageUnavailable | None = None

    def begin(self) -> None:
        """Do nothing."""

    def mark(self, trigger: Trigger) -> str | None:
        """Return the marks of the trigger's sources."""
        if self.error is not None:
            raise self.error
        found = [self.marks.get(name, "") for name in trigger.sources]
        return None if None in found else "".join(map(str, found))

    def processed(self, trigger: Trigger) -> str:
        """Return what was processed so far of the trigger's sources."""
        return "".join(self.done.get(name, self.marks.get(name) or "") for name in trigger.sources)

    def forget(self, trigger: Trigger) -> None:
        """Do nothing."""


@dataclass
class World:
    """A store, a clock, and servers that share both."""

    now: datetime = NOW
    looks: Looks = field(default_factory=Looks)
    started: list[tuple[str, Lane, Attempt]] = field(default_factory=list)
    runs: list[Future[Ending]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    triggers: dict[str, Trigger] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = MemoryStore(lambda: self.now)

    def declare(self, name: str, **keys: Any) -> None:
        self.triggers[name] = Trigger.model_validate({"name": name, **keys})

    def server(self, name: str) -> Scheduler:
        holder = Holder(name, 1, "then", f"run of {name}")
        leases = Leases(self.store, holder, lambda: f"token {next(self.numbers)}", LEASE)
        return Scheduler(
            project="shop",
            leases=leases,
            start=lambda lane, _, attempt: self.start(name, lane, attempt),
            clock=lambda: self.now,
            jitter=lambda: 0.5,
            seconds=lambda: float(self.now.timestamp()),
        )

    def start(self, server: str, lane: Lane, attempt: Attempt) -> Future[Ending]:
        self.started.append((server, lane, attempt))
        self.runs.append(Future())
        return self.runs[-1]

    def round(self, *servers: Scheduler, after: timedelta = SECOND) -> list[str]:
        """Let time pass, then every server take a turn; return what was started, by server and lane."""
        self.now += after
        known = len(self.started)
        for server in servers:
            server.round(self.triggers, self.looks)
        return [f"{name}: {lane}" for name, lane, _ in self.started[known:]]

    def end(self, result: Result = Result.SUCCEEDED, *, at: int = -1) -> None:
        """End the last run that was started, or another one."""
        _, _, attempt = self.started[at]
        ending = Ending(
            attempt.due, attempt.started, self.now, result, "" if result == "succeeded" else "why"
        )
        self.runs[at].set_result(ending)

    def state(self, trigger: str, entity: str = "") -> TriggerState:
        return TriggerRecords(self.store, "shop").all()[Lane(trigger, entity)].state


@pytest.fixture
def world() -> World:
    return World()


def hourly(world: World, **keys: Any) -> None:
    world.declare("hourly", job="j", phase="build", cron="0 * * * *", **keys)


def test_a_time_starts_one_run_and_its_end_is_recorded(world: World) -> None:
    hourly(world)
    one = world.server("a")
    assert world.round(one) == []
    assert world.round(one, after=HOUR) == ["a: hourly"]
    assert world.round(one, one) == []
    world.end()
    assert world.round(one) == []
    last = world.state("hourly").last
    assert last is not None
    assert (last.due, last.result, world.state("hourly").running) == (NOW + HOUR, Result.SUCCEEDED, None)


def test_of_two_servers_one_runs_a_trigger_and_the_other_takes_over_when_it_dies(world: World) -> None:
    hourly(world, catch_up="all")
    one, other = world.server("a"), world.server("b")
    for _ in range(12):
        world.round(one, other, after=10 * MINUTE)
        if one._running:
            world.end()
    assert {name for name, _, _ in world.started} == {"a"}
    world.now = NOW + 3 * HOUR - SECOND
    assert world.round(one, other) == ["a: hourly"]  # and now server a is killed, with its run
    assert world.round(other) == []
    assert world.round(other, after=LEASE) == []  # the pause before the retry
    assert world.round(other, after=10 * SECOND) == ["b: hourly"]
    assert world.started[-1][2].due == world.started[-2][2].due
    world.end()
    world.round(other)
    dues = [attempt.due for _, _, attempt in world.started]
    assert dues == [NOW + HOUR, NOW + 2 * HOUR, NOW + 3 * HOUR, NOW + 3 * HOUR]


def test_a_server_that_slept_through_its_lease_starts_nothing(world: World) -> None:
    hourly(world)
    one, other = world.server("a"), world.server("b")
    world.round(one)
    assert world.round(other, after=2 * HOUR) == ["b: hourly"]
    assert world.round(one, after=timedelta()) == []
    assert not one.held
    assert other.held == {"hourly"}
    world.end()
    assert world.round(one, other) == []
    assert world.state("hourly").running is None


def test_a_server_goes_on_with_a_manifest_that_has_taken_the_place_of_another_one(world: World) -> None:
    """Finding 13: the manifest was damaged, and replaced while the server ran."""
    hourly(world)
    world.declare("arrivals", entities=["orders"], on="arrival")
    one = world.server("a")
    assert world.round(one) == []
    world.store = MemoryStore(lambda: world.now)
    one.leases = replace(one.leases, store=world.store)
    world.looks.marks["orders"] = "2"
    found = [world.round(one, after=LEASE / 2) for _ in range(4)]
    assert ["a: arrivals (orders)"] in found
    assert world.round(one, after=HOUR) == ["a: hourly"]


def test_a_server_that_stops_hands_its_triggers_over_at_once(world: World) -> None:
    hourly(world)
    one, other = world.server("a"), world.server("b")
    world.round(one, other)
    one.release()
    world.round(other, after=2 * SECOND)
    assert other.held == {"hourly"}


def test_a_run_that_cannot_be_started_or_recorded_counts_as_interrupted_and_its_trigger_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trigger waited for its end until the server was started again."""
    hourly(world)
    one = world.server("a")
    begin = one.start

    def refuse(*_: object) -> Any:
        raise RuntimeError("can't start new thread")

    one.start = refuse
    world.round(one)
    with pytest.raises(RuntimeError):
        world.round(one, after=HOUR)
    one.start = begin
    world.round(one)
    assert world.round(one, after=MINUTE) == ["a: hourly"]

    with monkeypatch.context() as patch:
        patch.setattr("lakewright.triggers.scheduler._finished", refuse)
        world.end()
        world.round(one)
    world.round(one)
    assert world.round(one, after=5 * MINUTE) == ["a: hourly"]


def test_each_entity_has_a_run_of_its_own_and_one_that_fails_does_not_hold_up_the_others(
    world: World,
) -> None:
    world.declare("arrivals", entities=["orders", "customers"], on="arrival")
    one = world.server("a")
    world.looks.marks = {"orders": "slice 1"}
    assert world.round(one) == ["a: arrivals (orders)"]
    world.looks.marks = {"orders": "", "customers": "slice 1"}
    assert world.round(one) == ["a: arrivals (customers)"]
    world.end(Result.FAILED)
    assert world.round(one) == []
    assert world.state("arrivals", "customers").waits == "why"
    world.end(at=0)
    world.looks.marks = {"orders": "slice 2", "customers": "slice 1"}
    assert world.round(one) == ["a: arrivals (orders)"]


def test_what_arrives_during_a_run_starts_the_next_one(world: World) -> None:
    world.declare("arrivals", entities="orders", on="arrival")
    one = world.server("a")
    world.looks.marks = {"orders": "slice 1"}
    world.round(one)
    world.looks.marks = {"orders": "slices 1, 2"}
    assert world.round(one, one, one) == []
    world.end()
    assert world.round(one) == ["a: arrivals (orders)"]
    world.looks.marks = {"orders": ""}
    world.end()
    assert world.round(one, one) == []


def test_processed_slices_start_a_run_but_not_those_from_before(world: World) -> None:
    world.declare("gold", job="gold", phase="build", on="processed", of=["orders"])
    one = world.server("a")
    world.looks.marks = {"orders": "7"}
    assert world.round(one, one) == []
    world.looks.marks = {"orders": None}  # one is being processed
    assert world.round(one) == []
    world.looks.marks = {"orders": "8"}
    assert world.round(one) == ["a: gold"]
    world.end()
    assert world.round(one, one) == []


def test_what_is_being_processed_when_a_trigger_is_first_seen_starts_a_run(world: World) -> None:
    world.declare("gold", job="gold", phase="build", on="processed", of=["orders"])
    one = world.server("a")
    world.looks.marks, world.looks.done = {"orders": None}, {"orders": "7"}
    assert world.round(one) == []
    world.looks.marks = {"orders": "8"}
    assert world.round(one) == ["a: gold"]


def test_what_was_processed_while_no_server_ran_starts_a_run(world: World) -> None:
    world.declare("gold", job="gold", phase="build", on="processed", of=["orders"])
    world.looks.marks = {"orders": "7"}
    world.round(world.server("a"))
    world.looks.marks = {"orders": "9"}
    assert world.round(world.server("b"), after=HOUR) == ["b: gold"]


def test_a_retryable_failure_is_tried_again_after_a_pause_and_by_another_server_too(world: World) -> None:
    hourly(world)
    one = world.server("a")
    world.round(one)
    world.round(one, after=HOUR)
    world.end(Result.RETRY)
    assert world.round(one) == []
    assert world.round(one, after=6 * SECOND) == ["a: hourly"]
    world.end(Result.RETRY)
    world.round(one)
    one.release()
    other = world.server("b")
    assert world.round(other) == []
    assert world.round(other, after=15 * SECOND) == ["b: hourly"]
    assert world.started[-1][2].number == 3


def test_the_log_tells_how_long_a_run_took_and_not_when_it_is_tried_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """`retry after 1.0 s` was read as the pause."""
    hourly(world)
    one = world.server("a")
    world.round(one)
    world.round(one, after=HOUR)
    world.now += SECOND
    world.end(Result.RETRY)
    world.round(one, after=timedelta(0))
    assert caplog.messages[-1] == "trigger hourly: its run of 1.0 s failed, and is tried again: why"


def test_an_operator_pauses_resumes_and_asks_while_a_server_runs(world: World) -> None:
    hourly(world)
    one, records = world.server("a"), TriggerRecords(world.store, "shop")
    world.round(one)
    records.change(Lane("hourly"), lambda state: state.ask(world.now))
    assert world.round(one) == ["a: hourly"]
    world.end()
    world.round(one)
    records.change(Lane("hourly"), lambda state: state.paused(True))
    assert world.round(one, after=HOUR) == []
    records.change(Lane("hourly"), lambda state: state.paused(False))
    assert world.round(one) == ["a: hourly"]


def test_what_cannot_be_seen_starts_nothing_and_is_logged_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.declare("arrivals", entities="orders", on="arrival")
    one = world.server("a")
    world.looks.error = StorageUnavailable("the bronze folder is gone")
    assert world.round(one, one, one) == []
    assert caplog.text.count("the bronze folder is gone") == 1
    world.looks.error, world.looks.marks = None, {"orders": "slice 1"}
    assert world.round(one) == ["a: arrivals (orders)"]


def test_rounds_at_which_nothing_happens_write_nothing(world: World) -> None:
    hourly(world)
    one = world.server("a")
    world.round(one)
    before = TriggerRecords(world.store, "shop").all()
    for _ in range(5):
        world.round(one)
    assert TriggerRecords(world.store, "shop").all() == before


def test_a_disabled_or_removed_trigger_is_given_up(world: World) -> None:
    hourly(world)
    one = world.server("a")
    world.round(one)
    hourly(world, enabled=False)
    assert world.round(one, after=HOUR) == []
    assert one.held == frozenset()
