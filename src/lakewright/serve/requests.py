"""Requests: command lines that the server runs, each in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

__all__ = ["NO_SERVE", "TRIGGER", "Request", "Requests"]

NO_SERVE = "LAKEWRIGHT_NO_SERVE"
"""The environment variable that makes a command run without the server."""

TRIGGER = "LAKEWRIGHT_TRIGGER"
"""The environment variable that tells a command which trigger began it."""

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
        options: Global options that each command line gets: project, profiles, definitions, configuration.
    """

    options: tuple[str, ...] = ()

    def submit(
        self,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        folder: Path,
        *,
        stdin: Stream = None,
        stdout: Stream = None,
        stderr: Stream = None,
        trigger: str | None = None,
    ) -> int:
        """Run a command line and return its exit code.

        Args:
            arguments: Without the command's own name, as in `["process", "orders"]`.
            environ: The environment variables of the command.
            folder: Its working folder.
            stdin: What it reads.
            stdout: Where its results go.
            stderr: Where everything else goes.
            trigger: The name of the trigger that begins it.
        """
        begun = self.begin(
            arguments, environ, folder, stdin=stdin, stdout=stdout, stderr=stderr, trigger=trigger
        )
        code = begun.wait()
        return 1 if code is None else code

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
        """Begin a command line, which the caller waits for; the arguments are those of `submit`."""
        process = subprocess.Popen(
            [sys.executable, "-m", "lakewright", *self.options, *arguments],
            env={**environ, NO_SERVE: "1", **({} if trigger is None else {TRIGGER: trigger})},
            cwd=folder,
            stdin=_opened(stdin),
            stdout=_opened(stdout),
            stderr=_opened(stderr),
        )
        return _Process(process)


def _opened(stream: Stream) -> int | IO[bytes]:
    return subprocess.DEVNULL if stream is None else stream


@dataclass(frozen=True, slots=True)
class _Process:
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
