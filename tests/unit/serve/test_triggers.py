"""The triggers of a server, with requests that do no work."""

from __future__ import annotations

import json
import logging
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import IO, Any, cast

import pytest
from tests.disks import full_but_for, mounted
from tests.sessions import no_session

from lakewright.app import App
from lakewright.serve.service import Serving
from lakewright.serve.triggers import TriggerService
from lakewright.serve.watched_project import WatchedProject
from lakewright.triggers.records import Lane, TriggerRecords
from lakewright.triggers.state import Result, TriggerState

MODULE = """
connections: {shop: {}}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
jobs: {gold: {targets: nothing}}
targets: {nothing: {kind: empty}}
triggers:
  arrivals: {entities: orders, on: arrival, settle: 0s}
  nightly: {job: gold, phase: build, cron: "15 3 * * *"}
"""
HELD = {"code": "lease_held", "message": "another run writes it"}
BROKEN = {"code": "slice", "message": "the slice is no JSON"}


@dataclass
class Begun:
    """A request that ends when it is told to, or interrupted."""

    code: int
    is_over: Event = field(default_factory=Event)

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        self.code = 128 + number
        self.is_over.set()

    def wait(self, timeout: float | None = None) -> int | None:
        return self.code if self.is_over.wait(timeout) else None


@dataclass
class Requests:
    """Answers requests as a test wants, and remembers them."""

    document: Mapping[str, Any] = field(default_factory=dict)
    code: int = 0
    hangs: bool = False
    asked: list[tuple[tuple[str, ...], str | None]] = field(default_factory=list)

    def begin(
        self,
        arguments: Sequence[str],
        *,
        stdout: IO[bytes],
        stderr: IO[bytes],
        trigger: str | None = None,
    ) -> Begun:
        self.asked.append((tuple(arguments), trigger))
        stdout.write(json.dumps(self.document).encode())
        stdout.flush()
        begun = Begun(self.code)
        if not self.hangs:
            begun.is_over.set()
        return begun


@dataclass
class World:
    """A project on disk with a server's triggers."""

    folder: Path
    requests: Requests = field(default_factory=Requests)

    def write(self, module: str = MODULE) -> None:
        (self.folder / "project.yml").write_text(
            "name: shop\nmodules: [module.yml]\nlake: {root_folder: lake}\n"
        )
        (self.folder / "module.yml").write_text(module)

    def open(self, on_read: Callable[[Path], None] = lambda _: None) -> App:
        return App.open(self.folder, environ={}, sessions=no_session, on_read=on_read, despite_faults=True)

    def land(self, name: str) -> None:
        bronze = self.folder / "lake" / "bronze" / "shop" / "orders"
        bronze.mkdir(parents=True, exist_ok=True)
        (bronze / name).write_text("{}")

    def service(self) -> TriggerService:
        serving = Serving(
            options=cast("Any", None),
            files=cast("Any", None),
            project=WatchedProject(self.open),
            requests=cast("Any", self.requests),
            report=print,
            runner=cast("Any", None),
        )
        return TriggerService(serving)

    def state(self, lane: Lane) -> TriggerState | None:
        app = self.open()
        try:
            found = TriggerRecords(app.store, "shop").all().get(lane)
            return None if found is None else found.state
        finally:
            app.close()


ORDERS = Lane("arrivals", "orders")


def wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.write()
    return made


def has_ended(world: World) -> bool:
    state = world.state(ORDERS)
    return state is not None and state.last is not None


def test_a_slice_that_arrives_is_processed_by_a_request_in_the_name_of_the_trigger(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lakewright.serve.triggers")
    service = world.service()
    service.start()
    try:
        wait_for(lambda: world.state(ORDERS) is not None)
        assert service.is_busy
        assert world.requests.asked == []
        world.land("a.json")
        wait_for(lambda: has_ended(world))
    finally:
        service.stop()
    arguments, trigger = world.requests.asked[0]
    conf = ("--conf", "lakewright.bronze.settle=0s")
    assert arguments == ("process", "orders", "--despite-faults", *conf, "-o", "json")
    assert trigger == "arrivals"
    state = world.state(ORDERS)
    assert state is not None
    assert state.last is not None
    assert state.last.result is Result.SUCCEEDED
    own = [each.args for each in caplog.records if each.name == "lakewright.serve.triggers" and each.args]
    assert [args[1] for args in own if isinstance(args, tuple)] == [0], "what the run logged is kept"


@pytest.mark.parametrize(
    ("error", "code", "result"), [(HELD, 4, Result.RETRY), (BROKEN, 1, Result.FAILED)], ids=["held", "broken"]
)
def test_a_run_that_fails_is_retried_or_waits_for_the_operator(
    world: World, error: Mapping[str, Any], code: int, result: Result
) -> None:
    world.requests.document, world.requests.code = {"error": error}, code
    world.land("a.json")
    service = world.service()
    service.start()
    try:
        wait_for(lambda: has_ended(world))
    finally:
        service.stop()
    state = world.state(ORDERS)
    assert state is not None
    assert state.last is not None
    assert (state.last.result, state.last.message) == (result, error["message"])
    assert (state.retry_at is not None, bool(state.waits)) == (
        result is Result.RETRY,
        result is Result.FAILED,
    )


def test_a_server_that_stops_interrupts_its_runs_and_the_next_one_repeats_them(world: World) -> None:
    world.requests.hangs = True
    world.land("a.json")
    service = world.service()
    service.start()
    wait_for(lambda: bool(world.requests.asked))
    service.stop()
    state = world.state(ORDERS)
    assert state is not None
    assert state.last is not None
    assert (state.running, state.last.result, len(state.pending)) == (None, Result.RETRY, 1)


def test_a_broken_project_starts_nothing_and_is_told_once_until_it_is_mended(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.write("jobbs: {gold: {targets: 1}}\ntriggers: {t: {job: gold, phase: build, cron: '@daily'}}\n")
    service = world.service()
    service.start()
    try:
        wait_for(lambda: "start nothing at present" in caplog.text)
        world.write()
        wait_for(lambda: world.state(ORDERS) is not None)
    finally:
        service.stop()
    assert caplog.text.count("start nothing at present") == 1
    assert world.requests.asked == []


def test_a_fault_in_one_definition_stops_only_the_triggers_that_it_touches(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Rules of `serve`, §2: the others go on."""
    faulty = MODULE.replace("entities: orders,", "entities: [orders, people],").replace(
        "{kind: empty}", "{kind: emty}"
    )
    people = "  people: {id: 2, connection: shop, processtype: mrege}\njobs:"
    world.write(faulty.replace("jobs:", people))
    service = world.service()
    service.start()
    try:
        wait_for(lambda: "the project's files have faults" in caplog.text)
        world.land("a.json")
        wait_for(lambda: has_ended(world))
        assert service._scheduler is not None
        assert service._scheduler.held == {"arrivals"}
        world.write()
        wait_for(
            lambda: service._scheduler is not None and service._scheduler.held == {"arrivals", "nightly"}
        )
    finally:
        service.stop()
    assert {arguments[:3] for arguments, _ in world.requests.asked} == {
        ("process", "orders", "--despite-faults")
    }
    told = caplog.text.partition("the others go on:")[2]
    assert re.search(r"arrivals \(people\): module.yml:\d+: entity 'people'", told)
    assert re.search(r"nightly: module.yml:\d+: target 'nothing': unknown kind 'emty'", told)
    assert caplog.text.count("the project's files have faults") == 1


def test_while_the_disk_of_the_manifest_is_full_nothing_starts_and_afterwards_all_that_waits_does(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    state = world.folder / ".lakewright"
    with mounted(state):
        service = world.service()
        service.start()
        try:
            world.land("a.json")
            wait_for(lambda: has_ended(world))
            with full_but_for(state, pages=0):
                world.land("b.json")
                wait_for(lambda: "start nothing at present" in caplog.text)
                assert "the disk is full" in caplog.text
                time.sleep(2)
                assert len(world.requests.asked) == 1
            wait_for(lambda: len(world.requests.asked) == 2)
            wait_for(lambda: service._runs._begun == {})
        finally:
            service.stop()
        found = world.state(ORDERS)
        assert found is not None
        assert (found.running, found.failures) == (None, 0)
    assert caplog.text.count("start nothing at present") == 1
