"""Who gets a place in the server's JVM, and when the JVM is replaced: with a JVM that is a fake."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lakewright.spark.conf import SessionSettings
from lakewright.spark.jars import POSTGRES_DRIVER
from lakewright.spark.resident import AttachedSession, Place, ResidentJvm, Wanted, jvm_variables
from lakewright.warm import session_host
from lakewright.warm.session_host import RESTART, SessionHost


@dataclass
class FakeProcess:
    ended: threading.Event = field(default_factory=threading.Event)
    code: int | None = None

    def wait(self) -> int | None:
        self.ended.wait()
        return self.code

    def poll(self) -> int | None:
        return self.code

    def end(self, code: int) -> None:
        self.code = code
        self.ended.set()


class FakeJvm:
    """A JVM in which each place is a number; keys of `spark.sql.*` can change while it runs."""

    pid = 4711
    served = 0
    share = 0.0

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.process = FakeProcess()
        self.opened: list[Mapping[str, str]] = []
        self.in_use = 0
        made.append(self)

    def differences(self, wanted: Wanted) -> tuple[dict[str, str], list[str]]:
        theirs, ours = dict(wanted.settings.conf), dict(self.wanted.settings.conf)
        differing = {key for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key)}
        fixed = sorted(key for key in differing if not key.startswith("spark.sql"))
        return {key: theirs[key] for key in differing - set(fixed)}, fixed

    def open(self, options: Mapping[str, str]) -> Place:
        self.opened.append(options)
        self.in_use += 1
        self.served += 1
        return Place(0, "tag", 1, "secret", None, None)

    def close(self, place: Place) -> None:
        self.in_use -= 1

    def heap(self) -> tuple[int, int]:
        return 300, 1000

    def heap_share(self) -> float:
        return self.share

    def stop(self) -> None:
        self.process.end(0)


made: list[FakeJvm] = []


@dataclass
class Running:
    """A host in a thread of this process."""

    ask: socket.socket
    lifeline: int | None
    host: SessionHost
    codes: list[int]
    thread: threading.Thread
    lines: list[bytes]

    def connect(self, **conf: str) -> socket.socket:
        ours, theirs = socket.socketpair()
        socket.send_fds(self.ask, [b"s"], [theirs.fileno()])
        theirs.close()
        ours.settimeout(20)
        wanted = Wanted(SessionSettings(Path("state"), conf=conf), {}, "java")
        ours.sendall(json.dumps(wanted.as_json()).encode() + b"\n")
        return ours

    def cut(self) -> None:
        """Close the lifeline."""
        if self.lifeline is not None:
            os.close(self.lifeline)
        self.lifeline = None

    def ended(self) -> int:
        self.thread.join(20)
        assert not self.thread.is_alive()
        return self.codes[0]


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Running]]:
    monkeypatch.setattr(session_host, "ResidentJvm", FakeJvm)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    made.clear()
    begun: list[Running] = []

    def start() -> Running:
        ask, asked = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        read, write = os.pipe()
        lines = list[bytes]()
        host, codes = SessionHost(asked, read, send=lines.append), list[int]()
        thread = threading.Thread(target=lambda: codes.append(host.run()), daemon=True)
        thread.start()
        begun.append(Running(ask, write, host, codes, thread, lines))
        return begun[-1]

    yield start
    for each in begun:
        each.cut()
        each.thread.join(20)
        for jvm in made:
            jvm.process.end(0)
        os.close(each.host.lifeline)
        for part in (each.ask, each.host.asked, *each.host.sockets):
            part.close()


def told(link: socket.socket) -> dict[str, Any]:
    with link.makefile("rb") as lines:
        found: dict[str, Any] = json.loads(lines.readline())
    return found


def test_workers_share_a_jvm_with_settings_of_their_own(running: Callable[[], Running]) -> None:
    host = running()
    first = host.connect()
    assert told(first)["state"] == "ready"
    second = host.connect(**{"spark.sql.x": "1"})
    assert told(second)["state"] == "ready"
    (jvm,) = made
    assert jvm.opened == [{}, {"spark.sql.x": "1"}]
    assert host.lines == [b"heap 300 1000\n"]
    for link in (first, second):
        link.close()


def test_a_jvm_in_use_is_not_replaced_and_the_worker_is_told_why(running: Callable[[], Running]) -> None:
    host = running()
    first = host.connect()
    assert told(first)["state"] == "ready"
    second = host.connect(**{"spark.driver.memory": "1g"})
    refused = told(second)
    assert refused["state"] == "refused"
    assert "spark.driver.memory" in refused["why"]
    for link in (first, second):
        link.close()


def test_an_idle_jvm_that_does_not_fit_is_replaced(running: Callable[[], Running]) -> None:
    host = running()
    first = host.connect()
    assert told(first)["state"] == "ready"
    first.close()
    (jvm,) = made
    while jvm.in_use:
        threading.Event().wait(0.01)
    second = host.connect(**{"spark.driver.memory": "1g"})
    assert told(second) == {"state": "again"}
    second.close()
    assert host.ended() == 0


@pytest.mark.parametrize("what", ["served", "share"])
def test_a_worn_jvm_is_replaced_after_the_last_request(running: Callable[[], Running], what: str) -> None:
    host = running()
    first = host.connect()
    assert told(first)["state"] == "ready"
    (jvm,) = made
    setattr(jvm, what, session_host.MOST_SERVED if what == "served" else session_host.MOST_HEAP)
    assert host.thread.is_alive()
    first.close()
    assert host.ended() == RESTART


def test_the_end_of_the_jvm_is_told_to_its_workers(running: Callable[[], Running]) -> None:
    host = running()
    first = host.connect()
    assert told(first)["state"] == "ready"
    made[0].process.end(3)
    assert told(first) == {"state": "ended", "code": 3}
    assert host.ended() == 0
    first.close()


def test_a_host_whose_server_has_gone_serves_its_last_worker(running: Callable[[], Running]) -> None:
    host = running()
    first = host.connect()
    assert told(first)["state"] == "ready"
    host.cut()
    host.thread.join(0.2)
    assert host.thread.is_alive()
    first.close()
    assert host.ended() == 0


def test_what_a_worker_wants_survives_the_way_to_the_host() -> None:
    drivers = (POSTGRES_DRIVER,)
    wanted = Wanted(SessionSettings(Path("/state"), conf={"a": "b"}, drivers=drivers), {"A": "é"}, "/java")
    assert Wanted.from_json(json.loads(json.dumps(wanted.as_json()))) == wanted


def test_without_a_host_spark_starts_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = AttachedSession(lambda: None, Path())
    started: list[SessionSettings] = []
    monkeypatch.setattr(sessions._own, "start", started.append)
    sessions.start(SessionSettings(Path("state")))
    assert len(started) == 1


def test_only_what_a_jvm_reads_of_the_environment_counts() -> None:
    jvm = ResidentJvm.__new__(ResidentJvm)
    here = {"LANG": "C.UTF-8", "AWS_REGION": "x", "HOME": "/home/a"}
    jvm.wanted = Wanted(SessionSettings(Path("s")), here, "/java")
    same = Wanted(
        SessionSettings(Path("s")), {**here, "LANG": "nl_NL.utf8", "HOME": "/b", "TERM": "x"}, "/java"
    )
    assert all(jvm._others(same).values())
    other = Wanted(SessionSettings(Path("s")), {**here, "AWS_REGION": "y"}, "/java")
    assert [what for what, holds in jvm._others(other).items() if not holds] == [
        "the environment (AWS_REGION)"
    ]
    assert jvm_variables({"LC_ALL": "C"})["utf-8"] == "False"
