"""The worker host: a process with one thread that has imported everything, and forks a worker a request.

    python -m lakewright.warm.worker_host LISTENER RUNNER FOLDER...

LISTENER is the descriptor of the socket on which requests arrive; RUNNER names the function that runs a
command line, as `module:function`; when code in the folders changes, another host must take its place.
Its standard input is the lifeline: when it is closed, the host takes no more requests, waits for those that
run, and ends.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import socket
import sys
import sysconfig
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import lakewright_client as client
from lakewright.spark.resident import AttachedSession
from lakewright.warm.session_host import RESTART, SessionHost
from lakewright.warm.worker import FollowUp, run_request

READY, CHANGED = b"ready\n", b"changed\n"
"""What the host reports to the server: it takes requests; it no longer does, as the installation has changed.
Lines that begin with `requests` or `heap` say how many requests there are and how many of them wait, and how
much of the JVM's heap is used and how much there is."""
LIMIT = max(8, 4 * (os.cpu_count() or 1))
"""Requests that run at once; the others wait, but for those that a running one has started."""
FAILED = 70
Run = Callable[[Sequence[str], AttachedSession], tuple[int, Sequence[FollowUp]]]


@dataclass(eq=False, slots=True)
class _Worker:
    """A worker as its host knows it.

    Attributes:
        gate: Where it waits until it may begin.
    """

    connection: socket.socket
    gate: socket.socket
    waits: bool = False
    counts: bool = False

    def let_begin(self) -> None:
        """Let it begin."""
        with suppress(BrokenPipeError, ConnectionResetError):  # it was killed, and is buried next
            self.gate.send(b"g")


class WorkerHost:
    """Forks workers, and the process with the JVM when the first worker asks for Spark."""

    def __init__(self, listener: socket.socket, lifeline: int, run: Run, installation: Installation) -> None:
        self._listener = listener
        self._lifeline = lifeline
        self._run = run
        self._installation = installation
        self._workers: dict[int, _Worker] = {}
        # Workers send one end of a pair of sockets, which the session host receives.
        self._ask, self._asked = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._session_host: tuple[int, int] | None = None
        self._selector = selectors.DefaultSelector()
        self._signalled, self._signalling = socket.socketpair()
        self._folder = Path.cwd()
        self._is_draining = False
        self._reported = (0, 0)
        self._host_lines: int | None = None

    def serve(self) -> None:
        """Serve until the lifeline is closed and all requests have ended."""
        self._signalling.setblocking(False)
        self._signalled.setblocking(False)
        signal.set_wakeup_fd(self._signalling.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._drain())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for source, then in (
            (self._signalled, self._reap),
            (self._lifeline, self._drain),
            (self._listener, self._accept),
            (self._asked, self._start_session_host),
        ):
            self._selector.register(source, selectors.EVENT_READ, then)
        self._send(READY)
        while not self._is_draining or self._workers:
            for key, _ in self._selector.select():
                key.data()
        self._end_session_host()

    def _send(self, what: bytes) -> None:
        with suppress(BrokenPipeError):  # the server was killed
            os.write(1, what)

    def _accept(self) -> None:
        if self._installation.has_changed():
            # The server starts another host, which takes the request that waits.
            self._send(CHANGED)
            self._drain()
            return
        try:
            connection, _ = self._listener.accept()
        except OSError:  # the caller has gone again
            return
        if client.peer(connection, "") != os.geteuid():
            connection.close()
            return
        gate, ours = socket.socketpair()
        pid = self._fork(lambda: self._work(connection, gate), keep=(connection, gate))
        gate.close()
        worker = self._workers[pid] = _Worker(connection, ours)
        self._report()
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._hear(worker))

    def _work(self, connection: socket.socket, gate: socket.socket) -> int:
        sessions = AttachedSession(self._connect, self._folder)

        def wait(is_nested: bool) -> None:
            gate.sendall(b"n" if is_nested else b"w")
            gate.recv(1)  # at its end, the host has gone, and nobody counts

        return run_request(connection, wait, lambda arguments: self._run(arguments, sessions))

    def _connect(self) -> socket.socket | None:
        ours, theirs = socket.socketpair()
        try:
            socket.send_fds(self._ask, [b"s"], [theirs.fileno()])
        except OSError:
            return None
        finally:
            theirs.close()
        return ours

    def _hear(self, worker: _Worker) -> None:
        if worker.gate.fileno() < 0:  # it has ended since the selector looked
            return
        try:
            answer = worker.gate.recv(1)
        except ConnectionResetError:  # it was killed before it read that it may begin
            answer = b""
        if not answer:
            self._selector.unregister(worker.gate)
        elif answer == b"n":
            worker.let_begin()
        else:
            worker.waits = True
            self._admit()

    def _admit(self) -> None:
        """Let the workers that wait longest begin, as far as the limit allows."""
        free = LIMIT - sum(worker.counts for worker in self._workers.values())
        for worker in [each for each in self._workers.values() if each.waits][: max(free, 0)]:
            worker.waits, worker.counts = False, True
            worker.let_begin()
        self._report()

    def _report(self) -> None:
        """Report how many requests there are and how many of them wait, if that has changed."""
        now = (len(self._workers), sum(each.waits for each in self._workers.values()))
        if now != self._reported:
            self._reported = now
            self._send(b"requests %d %d\n" % now)

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            self._signalled.recv(4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            self._bury(pid, os.waitstatus_to_exitcode(status))
        self._admit()

    def _bury(self, pid: int, code: int) -> None:
        if self._session_host is not None and pid == self._session_host[0]:
            os.close(self._session_host[1])
            self._session_host = None
            if not self._is_draining or self._workers:
                self._selector.register(self._asked, selectors.EVENT_READ, self._start_session_host)
            if code == RESTART and not self._is_draining:
                self._start_session_host()
            return
        worker = self._workers.pop(pid, None)
        if worker is None:
            return
        if code < 0:  # a signal ended it, so that it couldn't say so
            with suppress(OSError):
                worker.connection.send(client.ENDED + f"{128 - code}\n".encode())
        if worker.gate in self._selector.get_map():
            self._selector.unregister(worker.gate)
        worker.connection.close()
        worker.gate.close()

    def _start_session_host(self) -> None:
        self._selector.unregister(self._asked)
        read, write = os.pipe()
        source, sink = os.pipe()

        def host() -> int:
            os.close(write)  # it would keep its own lifeline open, and outlive the server with its JVM
            os.close(source)
            os.dup2(2, 1)
            return SessionHost(self._asked, read, send=lambda line: os.write(sink, line)).run()

        pid = self._fork(host, keep=(self._asked, read))
        os.close(read)
        os.close(sink)
        self._host_lines = source
        self._selector.register(source, selectors.EVENT_READ, lambda: self._relay(source))
        self._session_host = (pid, write)

    def _relay(self, source: int) -> None:
        """Pass on to the server what the process with the JVM reports; at its end, that there is no JVM."""
        lines = os.read(source, 4096)
        if not lines:
            self._selector.unregister(source)
            os.close(source)
            self._host_lines = None if self._host_lines == source else self._host_lines
        self._send(lines or b"heap\n")

    def _end_session_host(self) -> None:
        if self._session_host is not None:
            pid, write = self._session_host
            os.close(write)
            os.waitpid(pid, 0)

    def _drain(self) -> None:
        if not self._is_draining:
            self._is_draining = True
            self._selector.unregister(self._listener)
            self._selector.unregister(self._lifeline)
            self._listener.close()

    def _fork(self, work: Callable[[], int], *, keep: Sequence[Any]) -> int:
        """Run a function in a process of its own, without what is the host's; return its process id."""
        pid = os.fork()
        if pid:
            return pid
        code = FAILED
        try:
            self._forget(keep)
            code = work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _forget(self, keep: Sequence[Any]) -> None:
        """Close what is the host's, in a process that was forked from it."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._selector.close()
        theirs = [self._listener, self._signalled, self._signalling]
        theirs += [part for worker in self._workers.values() for part in (worker.connection, worker.gate)]
        theirs += [] if self._asked in keep else [self._asked]
        for part in theirs:
            part.close()
        if self._session_host is not None:
            os.close(self._session_host[1])
        if self._host_lines is not None:
            os.close(self._host_lines)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, self._lifeline)
        os.close(null)


CODE = (Path(__file__).parents[1], Path(sysconfig.get_paths()["purelib"]))
"""The folders with the code of this installation: Lakewright's, and that of all packages."""
PAUSE = 1.0
"""Seconds between two looks at the files."""


@dataclass(slots=True)
class Installation:
    """The time of the newest file of the first folder, and of the last change of the others."""

    folders: Sequence[Path]
    newest: int
    clock: Callable[[], float] = time.monotonic
    looked: float = float("-inf")

    @classmethod
    def of(cls, folders: Sequence[Path], clock: Callable[[], float] = time.monotonic) -> Installation:
        """Return the installation as it is now; call it before most modules are imported."""
        return cls(folders, _newest(folders), clock)

    def has_changed(self) -> bool:
        """Return whether code was changed, installed or removed; files are looked at once a second."""
        now = self.clock()
        if now - self.looked < PAUSE:
            return False
        self.looked = now
        return _newest(self.folders) != self.newest


def _newest(folders: Sequence[Path]) -> int:
    # Installing anything changes the folder of installed packages itself.
    times = [folder.stat().st_mtime_ns for folder in folders]
    for place, _, names in os.walk(folders[0]):
        times += [Path(place, name).stat().st_mtime_ns for name in names if name.endswith(".py")]
    return max(times)


def main(arguments: Sequence[str]) -> int:
    """Run a worker host until its lifeline is closed."""
    number, runner, *folders = arguments
    installation = Installation.of([Path(folder) for folder in folders])
    module, _, function = runner.partition(":")
    found = import_module(module)
    found.preload()
    gc.collect()
    gc.freeze()
    listener = socket.socket(fileno=int(number))
    WorkerHost(listener, sys.stdin.fileno(), getattr(found, function), installation).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
