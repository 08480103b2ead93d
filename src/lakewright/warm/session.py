"""The part of a server that keeps a worker host: it takes requests, with Spark warm."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import lakewright_client as client
from lakewright.errors import SparkUnavailable
from lakewright.warm.requests import Gauges, Request, Requests
from lakewright.warm.worker_host import CHANGED, CODE, READY

log = logging.getLogger(__name__)

WARM_UP = ("serve", "warm-up")
"""The command that starts Spark before the first request needs it."""

BACKLOG = 256
QUICK = 10.0
"""Seconds within which a host that ends counts as one that can't run."""
MOST_QUICK = 3
SECONDS_TO_END = 5
"""Seconds to wait for a host without requests; with some, it ends later by itself."""


class WarmSession:
    """Starts a worker host, and another one when it ends or the installation changes.

    Args:
        requests: Begin the request that starts Spark; its socket and folder are those of all requests.
        runner: The function that runs a command line, as `module:function`.
        gauges: Keep what the host reports of its queue and its JVM.
        is_lazy: Whether the first request starts Spark; otherwise it is started at once.
        code: The folders whose changes need a new host.
    """

    name = "the warm session"
    url = None

    def __init__(
        self,
        requests: Requests,
        runner: str,
        gauges: Gauges,
        *,
        is_lazy: bool = False,
        code: Sequence[Path] = CODE,
    ) -> None:
        self.requests = requests
        self.gauges = gauges
        self.is_lazy = is_lazy
        self._command = [runner, *map(str, code)]
        self._warming: Request | None = None
        self._listener: socket.socket | None = None
        self._host: _Host | None = None
        self._is_stopping = False

    @property
    def is_busy(self) -> bool:
        """Whether a request runs."""
        return self.gauges.running > 0

    @property
    def has_ended(self) -> bool:
        """Never: if the host can't be kept, commands run without the server, as the log says."""
        return False

    def start(self) -> None:
        """Listen, and start the first host.

        Raises:
            SparkUnavailable: The host ended while it started.
        """
        listener = self._listener = self._listening()
        host = self._host = self._new_host(listener)
        keep = threading.Thread(target=self._keep, args=(listener, host), name="warm session", daemon=True)
        keep.start()
        if not self.is_lazy:
            self._warming = self.requests.begin(WARM_UP, stderr=sys.stderr)

    def stop(self) -> None:
        """Take no more requests; those that run go on, and the host ends with the last one."""
        self._is_stopping = True
        self.requests.socket.unlink(missing_ok=True)
        if self._warming is not None and self._warming.wait(0) is None:
            self._warming.interrupt(signal.SIGTERM)
        if self._listener is not None:
            self._listener.close()
        if self._host is not None:
            self._host.end(SECONDS_TO_END)

    def _listening(self) -> socket.socket:
        path = self.requests.socket
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            with client.short_path(str(path)) as short:
                listener.bind(short)
        finally:
            os.umask(before)
        listener.listen(BACKLOG)
        return listener

    def _new_host(self, listener: socket.socket) -> _Host:
        return _Host(listener, self.requests.folder, self._command)

    def _keep(self, listener: socket.socket, host: _Host) -> None:
        """Start another host whenever one ends; commands that nobody would take must not wait for one."""
        try:
            self._keep_hosts(listener, host)
        except Exception:
            log.exception("the process that runs requests can't be started again")
        if not self._is_stopping:
            log.error("the process that runs requests can't be kept; commands run without the server")
            self.stop()

    def _keep_hosts(self, listener: socket.socket, host: _Host) -> None:
        """Start another host whenever one ends, until that is in vain or the service stops."""
        quick = 0
        while quick < MOST_QUICK:
            begun = time.monotonic()
            has_changed = self._follow(host)
            if self._is_stopping:
                return
            if has_changed:
                log.info("the installation has changed; the next requests run with the new one")
            else:
                log.warning("the process that runs requests has ended; another one is started")
            host.end(patience=0)
            quick = quick + 1 if time.monotonic() - begun < QUICK else 0
            try:
                host = self._host = self._new_host(listener)
            except SparkUnavailable:
                return

    def _follow(self, host: _Host) -> bool:
        """Follow what a host reports until it takes no more requests; return whether the code has changed."""
        gauges = self.gauges
        while gauges.hear(line := host.next_line()):
            pass
        gauges.running, gauges.waiting, gauges.heap = 0, 0, None
        return line == CHANGED


class _Host:
    """A worker host, started from the server."""

    def __init__(self, listener: socket.socket, folder: Path, command: Sequence[str]) -> None:
        """Start it, and wait until it takes requests.

        Raises:
            SparkUnavailable: It has ended.
        """
        number = listener.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lakewright.warm.worker_host", str(number), *command],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(number,),
            # Ctrl-C in the server's terminal is for the server alone.
            start_new_session=True,
        )
        # Whenever it ends, nothing of it stays.
        threading.Thread(target=self._process.wait, name="worker host", daemon=True).start()
        if self.next_line() != READY:
            raise SparkUnavailable("the process that runs requests did not start")

    def next_line(self) -> bytes:
        """Return the next line that it writes; empty when it has ended."""
        output = self._process.stdout
        line = b"" if output is None or output.closed else output.readline()
        if output is not None and line in (b"", CHANGED):  # it writes no more
            output.close()
        return line

    def end(self, patience: float) -> None:
        """Let it end when no request runs any more; wait a moment for that."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
