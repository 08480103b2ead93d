"""Requests: command lines that the server runs, each in a process of its own."""

from __future__ import annotations

import logging
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, TYPE_CHECKING, Any, Protocol

import lakewright_client as client
from lakewright.app import TRIGGER

if TYPE_CHECKING:
    import _socket


log = logging.getLogger(__name__)

KILLED = 128 + signal.SIGKILL
"""The exit code of a request whose worker ended without one."""

ENCODINGS = ["utf-8:strict", "utf-8:backslashreplace", "utf-8:backslashreplace"]

LONGEST_LOG = 200_000
LONGEST_DOCUMENT = 50_000_000
"""How many bytes of a request's output are read, from its end."""


class Request(Protocol):
    """A command line that was begun."""

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        """Send it a signal, as Ctrl-C would."""
        ...

    def wait(self, timeout: float | None = None) -> int | None:
        """Return its exit code, or None if it still runs after `timeout` seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Requests:
    """Begins requests for the project of the server.

    Attributes:
        socket: Where the server's workers take requests.
        environ: The environment variables that commands get.
        folder: Their working folder.
        options: Global options that each command line gets: project, profiles, definitions, configuration.
        umask: That of what requests write.
    """

    socket: Path
    environ: Mapping[str, str]
    folder: Path
    options: tuple[str, ...] = ()
    umask: int = field(default_factory=client.current_umask)

    def begin(
        self,
        arguments: Sequence[str],
        *,
        stdout: IO[Any] | None = None,
        stderr: IO[Any] | None = None,
        trigger: str | None = None,
    ) -> Request:
        """Begin a command line, which the caller waits for. It reads nothing.

        It runs in a worker, with Spark warm; if none can be had, in a process with a JVM of its own.

        Args:
            arguments: Without the command's own name, as in `["process", "orders"]`.
            stdout: Where its results go.
            stderr: Where everything else goes.
            trigger: The name of the trigger that begins it.
        """
        environ = {**self.environ, **({} if trigger is None else {TRIGGER: trigger})}
        line = [*self.options, *arguments]
        with Path(os.devnull).open("r+b", buffering=0) as null:
            streams = (null, stdout or null, stderr or null)
            try:
                return self._warm(line, environ, streams)
            except client.Refused as refused:
                log.info("a request runs without the warm session: %s", refused)
            stdin, out, err = streams
            process = subprocess.Popen(
                [sys.executable, "-m", "lakewright", *line],
                env={**environ, client.NO_SERVE: "1"},
                cwd=self.folder,
                stdin=stdin,
                stdout=out,
                stderr=err,
            )
            return _Cold(process)

    def _warm(
        self, line: list[str], environ: Mapping[str, str], streams: tuple[IO[Any], IO[Any], IO[Any]]
    ) -> Request:
        message = client.ask(
            line,
            {os.fsencode(name): os.fsencode(value) for name, value in environ.items()},
            os.fsencode(self.folder),
            umask=self.umask,
            encodings=ENCODINGS,
        )
        stdin, stdout, stderr = (stream.fileno() for stream in streams)
        return _Warm(client.begin(str(self.socket), message, (stdin, stdout, stderr)))


class _Warm:
    """A request that runs in a worker."""

    def __init__(self, connection: _socket.socket) -> None:
        self._connection = connection
        self._code: int | None = None
        self._waiting = Lock()

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        """Send it a signal."""
        with suppress(OSError):  # it has just ended
            self._connection.send(bytes((number,)))

    def wait(self, timeout: float | None = None) -> int | None:
        """Return its exit code; that of a killed process if the server's workers have ended."""
        with self._waiting:
            if self._code is None and select.select([self._connection], [], [], timeout)[0]:
                code = client.result(self._connection)
                self._code = KILLED if code is None else code
                self._connection.close()
            return self._code


@dataclass(frozen=True, slots=True)
class _Cold:
    """A request that runs in a process with a JVM of its own."""

    process: subprocess.Popen[bytes]

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def wait(self, timeout: float | None = None) -> int | None:
        """Return its exit code; 128 and the signal's number if a signal ended it."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        return code if code >= 0 else 128 - code


class KeptRequest:
    """A request that prints a JSON document; what it has written is kept until it is closed.

    Args:
        requests: Begin it.
        arguments: What follows `lakewright`, without `-o json`.
        trigger: What its run's history names as its beginner.
    """

    def __init__(self, requests: Requests, arguments: Sequence[str], trigger: str) -> None:
        self._out, self._err = TemporaryFile(), TemporaryFile()  # noqa: SIM115 - closed when it is forgotten
        line = with_options(arguments, "-o", "json")
        self._request = requests.begin(line, stdout=self._out, stderr=self._err, trigger=trigger)

    def interrupt(self) -> None:
        """Interrupt it, as Ctrl-C would; it ends after the present commit."""
        with suppress(OSError):  # it has just ended
            self._request.interrupt()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, for `timeout` seconds at most, and return its exit code."""
        code = self._request.wait(timeout)
        return 1 if code is None else code

    @property
    def printed(self) -> str:
        """What it has written to stdout."""
        return _tail(self._out, LONGEST_DOCUMENT)

    @property
    def log(self) -> str:
        """The end of what it has written to stderr."""
        return _tail(self._err, LONGEST_LOG)

    def close(self) -> None:
        """Remove its output."""
        self._out.close()
        self._err.close()


@dataclass(slots=True)
class Gauges:
    """What the warm session reports of itself, for the metrics.

    Attributes:
        running: Requests that have begun, those that wait for their turn included.
        waiting: Requests that wait because as many run as may run at once.
        heap: The bytes of the JVM's heap that are used, and how many it may use; None without a JVM.
    """

    running: int = 0
    waiting: int = 0
    heap: tuple[int, int] | None = None

    def hear(self, line: bytes) -> bool:
        """Keep what a line of the worker host reports, and return whether it was about a gauge.

        Example:
            >>> gauges = Gauges()
            >>> gauges.hear(b"requests 5 3"), gauges.hear(b"heap 10 20"), gauges.hear(b"changed"), gauges
            (True, True, False, Gauges(running=5, waiting=3, heap=(10, 20)))
        """
        match line.split():
            case [b"requests", running, waiting]:
                self.running, self.waiting = int(running), int(waiting)
            case [b"heap", used, most]:
                self.heap = (int(used), int(most))
            case [b"heap"]:
                self.heap = None
            case _:
                return False
        return True


def with_options(arguments: Sequence[str], *options: str) -> list[str]:
    """Return arguments with options, before what must not be read as options.

    Example:
        >>> with_options(["process", "--", "orders"], "-o", "json")
        ['process', '-o', 'json', '--', 'orders']
    """
    at = list(arguments).index("--") if "--" in arguments else len(arguments)
    return [*arguments[:at], *options, *arguments[at:]]


def _tail(file: IO[bytes], longest: int) -> str:
    """Return the end of a file that another process writes."""
    try:
        size = os.fstat(file.fileno()).st_size
        read = os.pread(file.fileno(), longest, max(0, size - longest))
    except (OSError, ValueError):  # it was closed when the command was forgotten
        return ""
    return read.decode("utf-8", "replace")
