"""A server's services start in order, and stop whatever happens; one server runs for a project."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lakewright.app import App
from lakewright.errors import ServiceEnded, UsageError
from lakewright.serve import server
from lakewright.serve.server import IDLE_SECONDS, running, serve
from lakewright.serve.server_files import ServerFiles
from lakewright.serve.service import ServeOptions, Serving
from lakewright.serve.watched_project import WatchedProject
from lakewright.warm.requests import Requests


@dataclass
class Part:
    name: str
    seen: list[str] = field(default_factory=list)
    start_fails: bool = False
    stop_fails: bool = False
    is_busy: bool = False
    has_ended: bool = False
    url: str | None = None

    def start(self) -> None:
        self.seen.append(f"start {self.name}")
        if self.start_fails:
            raise UsageError("no")

    def stop(self) -> None:
        self.seen.append(f"stop {self.name}")
        if self.stop_fails:
            raise OSError("no")


def test_services_stop_in_the_reverse_order_although_one_fails_to() -> None:
    seen: list[str] = []
    with running([Part("a", seen), Part("b", seen, stop_fails=True)]):
        seen.append("at work")
    assert seen == ["start a", "start b", "at work", "stop b", "stop a"]


def test_what_has_started_is_stopped_when_a_service_cannot_start() -> None:
    seen: list[str] = []
    services = [Part("a", seen), Part("b", seen, start_fails=True), Part("c", seen)]
    with pytest.raises(UsageError), running(services):
        pass
    assert seen == ["start a", "start b", "stop b", "stop a"]


def test_a_second_server_of_a_project_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    files = ServerFiles(tmp_path)
    assert files.read_state() is None
    with files.locked():
        files.write_state({"pid": 1})
        with pytest.raises(UsageError, match="a server runs"), files.locked():
            pass
        assert files.read_state() == {"pid": 1}
        assert files.state.stat().st_mode & 0o777 == 0o600
    assert files.read_state() is None
    assert not files.state.exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.0.0.2"])
def test_a_loopback_host_needs_no_proxy(host: str) -> None:
    ServeOptions(host=host).check()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org"])
def test_any_other_host_is_refused_without_a_proxy(host: str) -> None:
    with pytest.raises(UsageError, match="loopback"):
        ServeOptions(host=host).check()
    ServeOptions(host=host, behind_proxy="X-User").check()


def test_options_are_arguments_of_the_command() -> None:
    options = ServeOptions(port=0, allow_data=True, behind_proxy="X-User")
    assert options.arguments() == (
        *("--host", "127.0.0.1", "--port", "0"),
        *("--allow-data", "--behind-proxy", "X-User"),
    )


@dataclass
class Clock:
    """Time that passes while the server sleeps."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 1.0)


def serving(folder: Path, *, is_on_demand: bool) -> Serving:
    files = ServerFiles(folder)
    options = ServeOptions(is_on_demand=is_on_demand)

    def nothing(_: object) -> App:
        raise AssertionError

    requests = Requests(files.socket, {}, folder)
    return Serving(options, files, WatchedProject(nothing), requests, "", print)


def test_a_server_on_demand_stops_when_it_has_had_nothing_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, part = Clock(), Part("a", is_busy=True)
    monkeypatch.setattr(server, "make_services", lambda _: (part,))

    def is_stopping() -> bool:
        part.is_busy = clock.now < 1000
        return clock.now > 10_000

    serve(serving(tmp_path, is_on_demand=True), is_stopping, clock=clock, sleep=clock.sleep)
    assert part.seen == ["start a", "stop a"]
    assert 1000 + IDLE_SECONDS <= clock.now <= 1000 + IDLE_SECONDS + 10

    serve(serving(tmp_path, is_on_demand=False), is_stopping, clock=clock, sleep=clock.sleep)
    assert clock.now > 10_000


def test_a_server_stops_with_an_error_when_a_service_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, seen = Clock(), list[str]()
    monkeypatch.setattr(server, "make_services", lambda _: (Part("a", seen), Part("b", seen, has_ended=True)))

    with pytest.raises(ServiceEnded, match="the service b has ended by an error"):
        serve(serving(tmp_path, is_on_demand=False), lambda: clock.now > 100, clock=clock, sleep=clock.sleep)

    assert seen == ["start a", "start b", "stop b", "stop a"]
