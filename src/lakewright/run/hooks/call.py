"""The calls that hooks make: an HTTP request or a process, each with a time limit."""

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
from typing import Any, Protocol
from urllib.parse import SplitResult, quote, unquote, urlsplit

SECONDS = 10.0
"""Time limit of one call, and of the wait for remaining calls at the end of a run."""

LONGEST_MESSAGE = 500
"""Characters of a process's standard error that are shown."""


class Call(Protocol):
    """A call to make."""

    @property
    def label(self) -> str:
        """The destination of the call as logs show it, without parts that may be secret."""
        ...

    def make(self, seconds: float) -> None:
        """Make the call.

        Raises:
            OSError: The call failed or took longer than `seconds`.
        """
        ...


@dataclass(frozen=True, slots=True)
class HttpCall:
    """An HTTP request; it succeeds with any 2xx status."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None

    @property
    def label(self) -> str:
        """The method with the URL's scheme, host, port and path."""
        try:
            parts = _parts(self.url)
        except OSError:
            return self.method
        return f"{self.method} {parts.scheme}://{_host(parts)}{parts.path}"

    def make(self, seconds: float) -> None:
        """Send the request; a name and password in the URL are sent as basic authentication.

        Raises:
            OSError: There is no answer in time, its status is an error or a redirect that is not followed,
                or the URL is not http or https.
        """
        parts = _parts(self.url)
        if parts.scheme not in ("http", "https"):
            raise OSError("only http and https URLs are supported")
        url = quote(parts._replace(netloc=_host(parts)).geturl(), safe=":/?#[]@!$&'()*+,;=%~")
        headers = dict(self.headers)
        if self.body is not None:
            headers.setdefault("Content-Type", "application/json")
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
            url, method=self.method, headers=headers, data=None if self.body is None else self.body.encode()
        )
        if parts.username is not None and not request.has_header("Authorization"):
            request.add_header("Authorization", _basic(parts))
        with _OPENER.open(request, timeout=seconds):
            return


class _OnSameHost(urllib.request.HTTPRedirectHandler):
    """Follows a redirect of a GET request within its host.

    Python would send the headers, which may hold secrets, to any host, and make a POST a GET without a body.
    """

    def redirect_request(  # noqa: PLR0917 - as the base class calls it
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Return the request for where a server redirects to.

        Raises:
            OSError: It is not followed.
        """
        old, new = _parts(req.full_url), _parts(newurl)
        is_less_safe = old.scheme == "https" and new.scheme != "https"
        if req.get_method() != "GET" or old.hostname != new.hostname or is_less_safe:
            place = f"{new.scheme}://{_host(new)}{new.path}"
            raise OSError(f"it is redirected to {place}, which is not followed: set its URL to that")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_OPENER = urllib.request.build_opener(_OnSameHost)


def _parts(url: str) -> SplitResult:
    """Return the parts of a URL.

    Raises:
        OSError: The URL is invalid; the message does not show it, because it may hold a password.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise OSError(
            "the URL has no readable host and port; in a name or password, / ? # are written %2F %3F %23"
        ) from None
    return parts


def _host(parts: SplitResult) -> str:
    """Return the host and port, without name and password."""
    return parts.netloc.rpartition("@")[2]


def _basic(parts: SplitResult) -> str:
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(pair.encode()).decode()}"


@dataclass(frozen=True, slots=True)
class ProcessCall:
    """A process that is started without a shell and reads the event from its standard input."""

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
            OSError: The process cannot start, fails, or takes too long and is killed with its children.
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
                _, stderr = process.communicate(self.stdin, timeout=seconds)
            except subprocess.TimeoutExpired:
                _kill(process.pid)
                raise TimeoutError(f"killed after {seconds:.0f} s") from None
        if process.returncode != 0:
            raise OSError(f"exited with {process.returncode}: {stderr.strip()[-LONGEST_MESSAGE:]}")


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
