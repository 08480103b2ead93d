"""The server of a project as commands see it: its files, its start in the background, its end, its page.

The files are in `.lakewright` of the project's folder; only its user can read them.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from lakewright.errors import SparkUnavailable, UsageError
from lakewright.errors.phrase import Command, Phrase


class ServerFiles:
    """The places of a server's files, in `.lakewright` of the project's folder.

    Attributes:
        basedir: The project's folder.
        socket: The socket on which requests arrive.
        lock: The file that the running server has locked.
        state: What the running server says about itself, as JSON.
        token: The token that programs send to the HTTP API.
        log: The output of a server that was started in the background.
    """

    def __init__(self, basedir: Path) -> None:
        self.basedir = basedir.resolve()
        self.folder = self.basedir / ".lakewright"
        self.socket = self.folder / "serve.sock"
        self.lock = self.folder / "serve.lock"
        self.state = self.folder / "serve.json"
        self.token = self.folder / "serve.token"
        self.log = self.folder / "serve.log"

    def write(self, path: Path, text: str) -> None:
        """Write one of the files as a whole; only this user can read it."""
        part = path.with_name(f".{path.name}.{os.getpid()}")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        part.replace(path)

    def write_state(self, state: Mapping[str, Any]) -> None:
        """Replace what the server says about itself."""
        self.write(self.state, json.dumps(state, indent=2) + "\n")

    def read_state(self) -> dict[str, Any] | None:
        """Return what the running server says about itself; None if no server runs."""
        if not self.is_locked():
            return None
        try:
            found: dict[str, Any] = json.loads(self.state.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # it is starting or stopping
            return {}
        return found

    def is_locked(self) -> bool:
        """Return whether a server runs: it holds the lock as long as it lives."""
        try:
            with self.lock.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def taken(self) -> UsageError:
        """Return that another server runs for the project."""
        return UsageError(
            f"a server runs for the project in {self.basedir} already",
            remedy=Phrase(Command("serve", "status"), " shows it; ", Command("serve", "stop"), " stops it."),
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the project's only server in the `with` block; its files are removed afterwards.

        Raises:
            UsageError: Another server runs.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        # Opened for appending: another server's lock file must stay as it is.
        with os.fdopen(os.open(self.lock, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise self.taken() from None
            try:
                yield
            finally:
                for path in (self.state, self.socket, self.token):
                    path.unlink(missing_ok=True)


START_SECONDS = 60
PAUSE_SECONDS = 0.05
LINES = 20
"""Lines of the log that an error shows when the server doesn't start."""


def start_in_background(files: ServerFiles, arguments: Sequence[str]) -> dict[str, Any]:
    """Start a server in a session of its own, wait until it is ready, and return its state.

    Raises:
        UsageError: A server runs already.
        SparkUnavailable: It ended, or wasn't ready in time; the error has the end of its log.
    """
    if files.is_locked():
        raise files.taken()
    process = _begun(files, arguments)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        state = files.read_state()
        if state and state.get("pid") == process.pid:
            return state
        time.sleep(PAUSE_SECONDS)
    process.terminate()
    tail = "\n".join(files.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LINES:])
    raise SparkUnavailable(f"the server did not start\n{tail}", remedy=f"Its output is in {files.log}.")


def start_on_demand(files: ServerFiles, arguments: Sequence[str]) -> bool:
    """Start a server for the next commands, unless one runs; return whether it was started."""
    if files.is_locked():
        return False
    process = _begun(files, [*arguments, "serve", "--on-demand"])
    # The caller ends before the server does, and must not learn that it still runs.
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
        time.sleep(PAUSE_SECONDS)
    return True


LINK_SECONDS = 5.0


def new_link(files: ServerFiles, state: Mapping[str, Any]) -> str | None:
    """Return a link that opens the page once; None if the running server has no page for this user."""
    url = state.get("http")
    try:
        token = files.token.read_text(encoding="utf-8").strip()
        request = Request(  # noqa: S310 - the address is the server's own
            f"{url}/api/v1/links", b"", {"authorization": f"Bearer {token}"}, method="POST"
        )
        with urlopen(request, timeout=LINK_SECONDS) as answer:  # noqa: S310
            return str(json.load(answer)["url"])
    except (OSError, URLError, ValueError, KeyError):
        return None
