"""Telling whether a holder of a lease has ended."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from lakewright.manifest.lease import Holder
from lakewright.stores import process
from lakewright.stores.process import is_dead, this_process


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    code = (
        "import sys; from lakewright.stores.process import this_process; "
        "print(this_process('run').started, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        yield started
        started.kill()


def holder_of(child: subprocess.Popen[str]) -> Holder:
    assert child.stdout is not None
    return replace(this_process("run"), pid=child.pid, started=child.stdout.readline().strip())


def test_a_living_process_is_not_dead(child: subprocess.Popen[str]) -> None:
    assert not is_dead(this_process("run"))
    assert not is_dead(holder_of(child))


def test_a_process_is_dead_once_killed_and_waited_for_or_not(child: subprocess.Popen[str]) -> None:
    holder = holder_of(child)
    child.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while not is_dead(holder) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert is_dead(holder)
    child.wait()
    assert is_dead(holder)


def test_a_stopped_process_is_not_dead(child: subprocess.Popen[str]) -> None:
    holder = holder_of(child)
    child.send_signal(signal.SIGSTOP)
    assert not is_dead(holder)


def test_a_process_id_in_use_again_is_not_the_holder() -> None:
    me = this_process("run")
    world, _, ticks = me.started.rpartition(" ")
    assert is_dead(replace(me, started=f"{world} {int(ticks) - 1}"))


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"host": "another"},
        {"started": ""},
        {"started": "other-boot pid:[1] 5"},
        {"started": "nonsense"},
    ],
)
def test_of_processes_elsewhere_nothing_is_known(elsewhere: dict[str, str]) -> None:
    assert not is_dead(replace(this_process("run"), pid=2**22 - 1, **elsewhere))


def test_without_proc_the_time_of_creation_tells(
    child: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "PROC", Path("/nowhere"))
    holder = replace(this_process("run"), pid=child.pid, started=str(process._started(child.pid)))
    assert " created " in holder.started
    assert not is_dead(holder)
    assert is_dead(replace(holder, started=f"{holder.started}1"))
    child.kill()
    child.wait()
    assert is_dead(holder)


def test_a_process_that_cannot_be_read_is_not_taken_for_dead(
    child: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = holder_of(child)

    def denied(pid: int) -> psutil.Process:
        if pid == child.pid:
            raise psutil.AccessDenied(pid)
        return known(pid)

    known = psutil.Process
    monkeypatch.setattr(psutil, "Process", denied)
    assert not is_dead(holder)


def test_ticks_are_those_of_proc() -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("there is no /proc")
    ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    assert this_process("run").started.rpartition(" ")[2] == ticks
