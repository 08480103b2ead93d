"""One JVM for all workers of `make test`.

While a JVM is new, its compiler takes more than half of its processor time: about a minute of it, until
slices are compared, folded and undone by compiled code. One JVM for all workers has that minute once.

The workers attach to it as the processes of `lakewright serve` do: each has a session, a catalog and tags of
jobs of its own. A test that harms its JVM, or that counts all jobs of one, is marked `nightly`: there each
worker starts its own.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.spark.conf import SessionSettings
from lakewright.spark.launch import environment_set
from lakewright.spark.resident import AttachedSession
from lakewright.warm.session_host import SessionHost

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ADDRESS = "LAKEWRIGHT_TEST_JVM"
"""The variable that tells workers the socket at which the JVM's process listens."""


class SharedJvm:
    """The process that starts the JVM for the first worker that asks; it ends with the one that made it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lakewright-jvm-")
        address = str(Path(self._folder.name) / "jvm.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(address)
            listening.listen()  # a worker may ask before the process has begun
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.shared_jvm", str(listening.fileno())],
                cwd=Path(__file__).parents[1],
                stdin=subprocess.PIPE,
                pass_fds=[listening.fileno()],
                start_new_session=True,  # an interrupt of the terminal is for the tests
            )
        os.environ[ADDRESS] = address

    def end(self) -> None:
        """End the process and its JVM."""
        os.environ.pop(ADDRESS, None)
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._folder.cleanup()


@contextmanager
def session_in(address: str, settings: SessionSettings) -> Iterator[SparkSession]:
    """Give a session with these settings in the JVM whose process listens at a socket."""
    # Functions in Python run on this interpreter, as with `build_session`.
    with environment_set(dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), sys.executable)):
        sessions = AttachedSession(partial(_connect, address), Path.cwd())
        session = sessions.start(settings)
        yield session
        sessions.stop(session)


def _connect(address: str) -> socket.socket:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.connect(address)
    return link


def _hand_over(listening: socket.socket, ask: socket.socket) -> None:
    """Give each connection to the host, which takes them as it takes those of a server's workers."""
    while True:
        link, _ = listening.accept()
        with link, suppress(OSError):
            socket.send_fds(ask, [b"s"], [link.fileno()])


def main(descriptor: str) -> int:
    """Host the JVM for those who connect to a socket that was opened by the caller, until stdin is closed."""
    listening = socket.socket(fileno=int(descriptor))
    ask, asked = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    threading.Thread(target=_hand_over, args=(listening, ask), daemon=True).start()
    return SessionHost(asked, sys.stdin.fileno()).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
