"""Ending a JVM that is being launched."""

from __future__ import annotations

import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from time import sleep
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from lakewright.errors import SparkUnavailable
from lakewright.spark.conf import SessionSettings
from lakewright.spark.launch import end_launched_jvm, launched_jvms
from lakewright.spark.resident import AttachedSession
from lakewright.spark.session import OwnSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def waiting(*arguments: str) -> subprocess.Popen[bytes]:
    """Return a child that waits for the end of its input, with these arguments."""
    return subprocess.Popen(["sh", "-c", "read line", *arguments], stdin=subprocess.PIPE)


def test_the_jvm_of_a_start_is_killed_and_no_other_child() -> None:
    """B8: no JVM is left behind after Ctrl-C while Spark starts."""
    submit = "org.apache.spark.deploy.SparkSubmit"
    with ExitStack() as children:
        earlier = children.enter_context(waiting(submit, "pyspark-shell"))
        while not (others := launched_jvms()):
            sleep(0.01)
        jvm = children.enter_context(waiting(submit, "pyspark-shell"))
        hook = children.enter_context(waiting("hook"))
        for child in (earlier, jvm, hook):
            children.callback(child.kill)
        assert earlier.pid in others
        while jvm.pid not in launched_jvms():  # its command line is empty for a moment
            sleep(0.01)
        end_launched_jvm(others)
        assert jvm.wait(60) == -9
        assert (earlier.poll(), hook.poll()) == (None, None)


@pytest.mark.parametrize("had_jvm", [False, True])
def test_an_abandoned_start_ends_only_a_jvm_that_it_launched(
    had_jvm: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B8: a JVM that was there before may be another program's, whose session was stopped."""
    sessions, ended, gateway = OwnSession(), list[str](), SimpleNamespace(jvm=None)
    context = SimpleNamespace(_gateway=gateway if had_jvm else None, _jvm=None, _active_spark_context=None)

    def build(_: SessionSettings) -> SparkSession:
        context._gateway = gateway
        sessions.abandon()
        raise RuntimeError("the JVM's port is closed")

    monkeypatch.setattr("lakewright.spark.session.check_jvm", lambda _: None)
    monkeypatch.setattr("lakewright.spark.session.build_session", build)
    monkeypatch.setattr("lakewright.spark.session.end_launched_jvm", lambda _: ended.append("jvm"))
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(SparkContext=context))
    with pytest.raises(RuntimeError if had_jvm else SparkUnavailable):
        sessions.start(SessionSettings(tmp_path))
    assert ended == ([] if had_jvm else ["jvm"])
    assert context._gateway is (gateway if had_jvm else None)


def test_an_abandoned_start_waits_no_longer_for_the_jvm_of_a_server(tmp_path: Path) -> None:
    """B8: the resident JVM goes on to start, for the next command."""
    ours, servers = socket.socketpair()
    session = AttachedSession(lambda: ours, tmp_path)
    with servers, ThreadPoolExecutor(1) as pool:
        started = pool.submit(session.start, SessionSettings(tmp_path))
        asked = servers.recv(1 << 16)
        session.abandon()
        with pytest.raises(SparkUnavailable, match="the start of Spark was interrupted"):
            started.result(60)
    assert asked.startswith(b"{")
