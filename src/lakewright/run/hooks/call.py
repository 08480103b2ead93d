"""What hooks have done because of an event: an HTTP request, or a process. Either takes a bounded time."""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.request
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import SplitResult, quote, unquote, urlsplit

__all__ = ["Call", "HttpCall", "ProcessCall"]

LONGEST_MESSAGE = 500


class Call(Protocol):
    """One thing to do."""

    @property
    def label(self) -> str:
        """What is called, for logs, without what may be secret."""
        ...

    def make(self, seconds: float) -> None:
        """Have done it.

        Raises:
            OSError: It failed, or took longer.
        """
        ...


@dataclass(frozen=True, slots=True)
class HttpCall:
    """A request; any answer of success will do."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None

    @property
    def label(self) -> str:
        """Scheme, host, port and path of the URL."""
        try:
            parts = _parts(self.url)
        except OSError:
            return self.method
        return f"{self.method} {parts.scheme}://{_place(parts)}{parts.path}"

    def make(self, seconds: float) -> None:
        """Send the request, with a name and password in the URL as basic authentication.

        Raises:
            OSError: Nobody answers in time, or not with success; or the URL isn't one that is called.
        """
        parts = _parts(self.url)
        if parts.scheme not in ("http", "https"):
            raise OSError("only http and https URLs are called")
        url = quote(parts._replace(netloc=_place(parts)).geturl(), safe=":/?#[]@!$&'()*+,;=%~")
        headers = dict(self.headers)
        if self.body is not None:
            headers.setdefault("Content-Type", "application/json")
        request = urllib.request.Request(  # noqa: S310 - the scheme is looked at above
            url, method=self.method, headers=headers, data=None if self.body is None else self.body.encode()
        )
        if parts.username is not None and not request.has_header("Authorization"):
            # Where an answer leads to another host, that one isn't told.
            request.add_unredirected_header("Authorization", _basic(parts))
        with urllib.request.urlopen(request, timeout=seconds):  # noqa: S310 - as above
            return


def _parts(url: str) -> SplitResult:
    """Return the parts of a URL.

    Raises:
        OSError: It isn't one; the message shows nothing of it.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise OSError(
            "the URL has no readable host and port; in a name or password, / ? # are written %2F %3F %23"
        ) from None
    return parts


def _place(parts: SplitResult) -> str:
    """Return host and port, without name and password."""
    return parts.netloc.rpartition("@")[2]


def _basic(parts: SplitResult) -> str:
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(pair.encode()).decode()}"


@dataclass(frozen=True, slots=True)
class ProcessCall:
    """A process, started without a shell; it is given the event on its standard input."""

    arguments: tuple[str, ...]
    environ: Mapping[str, str]
    folder: Path
    stdin: str

    @property
    def label(self) -> str:
        """The program."""
        return self.arguments[0]

    def make(self, seconds: float) -> None:
        """Run the process to its end.

        Raises:
            OSError: It can't be started, fails, or takes longer and is killed with all that it started.
        """
        with subprocess.Popen(
            self.arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=dict(self.environ),
            cwd=self.folder,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                _, said = process.communicate(self.stdin, timeout=seconds)
            except subprocess.TimeoutExpired:
                _kill(process.pid)
                raise TimeoutError(f"killed after {seconds:.0f} s") from None
        if process.returncode != 0:
            raise OSError(f"ended with {process.returncode}: {said.strip()[-LONGEST_MESSAGE:]}")


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
