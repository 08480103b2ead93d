"""A server in the background: its start, and its end on request."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from lakewright.errors import SparkUnavailable, UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.serve.server_files import ServerFiles

__all__ = ["start_in_background", "start_on_demand", "stop_server"]

START_SECONDS = 60
PAUSE = 0.05
LINES = 20
"""Lines of the log that an error shows when the server doesn't start."""


def start_in_background(files: ServerFiles, arguments: Sequence[str]) -> dict[str, Any]:
    """Start a server in a session of its own, wait until it is ready, and return its state.

    Raises:
        UsageError: A server runs already.
        SparkUnavailable: It ended, or wasn't ready in time; the error has the end of its log.
    """
    if files.is_locked():
        raise UsageError(
            f"a server runs for the project in {files.basedir} already",
            remedy=Phrase(Command("serve", "status"), " shows it; ", Command("serve", "stop"), " stops it."),
        )
    process = _begun(files, arguments)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        state = files.read_state()
        if state and state.get("pid") == process.pid:
            return state
        time.sleep(PAUSE)
    process.terminate()
    tail = "\n".join(files.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LINES:])
    raise SparkUnavailable(f"the server did not start\n{tail}", remedy=f"Its output is in {files.log}.")


def start_on_demand(files: ServerFiles, arguments: Sequence[str]) -> bool:
    """Start a server for the next commands, unless one runs; return whether it was started."""
    if files.is_locked():
        return False
    process = _begun(files, [*arguments, "serve", "--on-demand"])
    # The caller ends before the server does, and must not be told that it still runs.
    process.returncode = 0
    return True


def _begun(files: ServerFiles, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    files.folder.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(files.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "lakewright", *arguments],
            cwd=files.basedir,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def stop_server(files: ServerFiles, timeout: float) -> bool:
    """Ask the project's server to stop and wait until it has; return whether one was running.

    Raises:
        UsageError: It runs on another machine, or still runs after `timeout` seconds.
    """
    state = files.read_state()
    if state is None:
        return False
    host, pid = state.get("host"), state.get("pid")
    if host != socket.gethostname() or not isinstance(pid, int):
        raise UsageError(
            f"the server runs on {host or 'another machine'}, or is starting",
            remedy="Stop it there, or try again in a moment.",
        )
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout
    while files.is_locked():
        if time.monotonic() > deadline:
            raise UsageError(
                f"the server, process {pid}, still runs after {timeout:g} s",
                remedy=f"It may be waiting for a commit. `kill -9 {pid}` loses nothing that is committed.",
            )
        time.sleep(PAUSE)
    return True
