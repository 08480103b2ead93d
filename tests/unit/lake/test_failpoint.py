"""Places where tests make a process die, stand still or fail."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from lakewright.lake.failpoint import FAILPOINT, reach_failpoint

CODE = (
    "from lakewright.lake.failpoint import reach_failpoint; "
    "reach_failpoint('here'); reach_failpoint('here'); print('on')"
)


def test_nothing_happens_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    reach_failpoint("here")
    monkeypatch.setenv(FAILPOINT, "there:kill")
    reach_failpoint("here")


def test_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FAILPOINT, "here:raise")
    with pytest.raises(OSError, match="failpoint here"):
        reach_failpoint("here")


def test_it_is_killed_or_stands_still_once() -> None:
    killed = subprocess.run([sys.executable, "-c", CODE], env={FAILPOINT: "here:kill", **path()}, check=False)
    assert killed.returncode == -signal.SIGKILL
    with subprocess.Popen(
        [sys.executable, "-c", CODE], env={FAILPOINT: "here:stop", **path()}, stdout=-1, text=True
    ) as stopped:
        while not is_stopped(stopped.pid):
            pass
        stopped.send_signal(signal.SIGCONT)
        assert stopped.communicate(timeout=60)[0] == "on\n"


def path() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(sys.path)}


def is_stopped(pid: int) -> bool:
    said = subprocess.run(
        ["/bin/ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=True
    )
    return said.stdout.startswith("T")
