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
from threading import Lock
from typing import IO, TYPE_CHECKING, Protocol

import lakewright_client as client

if TYPE_CHECKING:
    import _socket


log = logging.getLogger(__name__)

TRIGGER = "LAKEWRIGHT_TRIGGER"
"""The environment variable that names the trigger which began a command."""

KILLED = 128 + signal.SIGKILL
"""The exit code of a request whose worker ended without one."""

ENCODINGS = ["utf-8:strict", "utf-8:backslashreplace", "utf-8:backslashreplace"]

Stream = int | IO[bytes] | None
"""A file descriptor or an open file; None is the null device."""


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
        options: Global options that each command line gets: project, profiles, definitions, configuration.
        umask: That of what requests write.
    """

    socket: Path
    options: tuple[str, ...] = ()
    umask: int = field(default_factory=client.current_umask)

    def begin(
        self,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        folder: Path,
        *,
        stdin: Stream = None,
        stdout: Stream = None,
        stderr: Stream = None,
        trigger: str | None = None,
    ) -> Request:
        """Begin a command line, which the caller waits for.

        It runs in a worker, with Spark warm; if none can be had, in a process with a JVM of its own.

        Args:
            arguments: Without the command's own name, as in `["process", "orders"]`.
            environ: The environment variables of the command.
            folder: Its working folder.
            stdin: What it reads.
            stdout: Where its results go.
            stderr: Where everything else goes.
            trigger: The name of the trigger that begins it.
        """
        variables = {**environ, **({} if trigger is None else {TRIGGER: trigger})}
        line = [*self.options, *arguments]
        streams = [
            _Stream.of(stream, mode) for stream, mode in ((stdin, "rb"), (stdout, "wb"), (stderr, "wb"))
        ]
        numbers = (streams[0].number, streams[1].number, streams[2].number)
        try:
            return self._warm(line, variables, folder, numbers)
        except client.Refused as refused:
            log.info("a request runs without the warm session: %s", refused)
            return self._cold(line, variables, folder, numbers)
        finally:
            for stream in streams:
                stream.close()

    def _warm(
        self, line: Sequence[str], environ: Mapping[str, str], folder: Path, streams: tuple[int, int, int]
    ) -> Request:
        message = client.ask(
            list(line),
            {os.fsencode(name): os.fsencode(value) for name, value in environ.items()},
            os.fsencode(folder),
            umask=self.umask,
            encodings=ENCODINGS,
        )
        return _Warm(client.begin(str(self.socket), message, streams))

    def _cold(
        self, line: Sequence[str], environ: Mapping[str, str], folder: Path, streams: tuple[int, int, int]
    ) -> Request:
        stdin, stdout, stderr = streams
        process = subprocess.Popen(
            [sys.executable, "-m", "lakewright", *line],
            env={**environ, client.NO_SERVE: "1"},
            cwd=folder,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )
        return _Cold(process)


@dataclass(frozen=True, slots=True)
class _Stream:
    """A stream that a request gets, as a descriptor.

    Attributes:
        is_ours: Whether it was opened for the request.
    """

    number: int
    is_ours: bool

    @classmethod
    def of(cls, stream: Stream, mode: str) -> _Stream:
        """Return the descriptor of a stream."""
        if stream is None:
            return cls(os.open(os.devnull, os.O_RDONLY if mode == "rb" else os.O_WRONLY), is_ours=True)
        return cls(stream if isinstance(stream, int) else stream.fileno(), is_ours=False)

    def close(self) -> None:
        """Close it, if it was opened here."""
        if self.is_ours:
            os.close(self.number)


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
