"""The process that owns the resident JVM, and gives the workers of a server places in it."""

from __future__ import annotations

import json
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lakewright.errors import LakewrightError
from lakewright.spark.resident import Place, ResidentJvm, Wanted

log = logging.getLogger(__name__)

RESTART = 75
"""The exit code of a host whose JVM is to be replaced by one with the same settings at once."""

MOST_SERVED = 2_000
MOST_SECONDS = 24 * 3600.0
MOST_HEAP = 0.7
"""When a JVM is replaced, between two requests: after so many, so long, or with so much of the heap used."""


HEAP_SECONDS = 15.0
"""How often the use of the heap is reported: each time costs the JVM about a millisecond."""


class SessionHost:
    """Starts the JVM for the first worker that asks, and serves all workers that want the same one.

    Attributes:
        asked: Where workers send one end of a pair of sockets.
        lifeline: Closed when the server ends.
    """

    def __init__(
        self,
        asked: socket.socket,
        lifeline: int,
        clock: Callable[[], float] = time.monotonic,
        *,
        send: Callable[[bytes], object] = lambda _: None,
    ) -> None:
        self.asked = asked
        self.lifeline = lifeline
        self._clock = clock
        self._send_line = send
        self._begun = clock()
        self._jvm: ResidentJvm | None = None
        self._starting = threading.Lock()
        self._links: set[socket.socket] = set()
        self._wake_up, self._woken = self.sockets = socket.socketpair()
        self._is_ending = False
        self._is_worn = False

    def run(self) -> int:
        """Serve until the server ends, the JVM ends or must be replaced; return the exit code."""
        is_alive = True
        while True:
            watched: list[Any] = [self._woken, *([self.lifeline] if is_alive else []), *self._accepting()]
            ready, _, _ = select.select(watched, [], [])
            if self.lifeline in ready and not os.read(self.lifeline, 1):
                is_alive = False
            if self.asked in ready:
                self._accept()
            if self._woken in ready:
                self._woken.recv(64)
            if self._has_ended:
                return 0
            if not self._links and (self._is_worn or self._is_ending or not is_alive):
                code = RESTART if is_alive and not self._is_ending else 0
                self._stop()
                return code

    def _accepting(self) -> list[socket.socket]:
        return [] if self._is_ending or self._is_worn else [self.asked]

    def _accept(self) -> None:
        message, descriptors, _, _ = socket.recv_fds(self.asked, 16, 1)
        if message and descriptors:
            link = socket.socket(fileno=descriptors[0])
            self._links.add(link)
            threading.Thread(target=self._attend, args=(link,), daemon=True).start()

    def _attend(self, link: socket.socket) -> None:
        place: Place | None = None
        try:
            with link.makefile("rb") as lines:
                asked = lines.readline()
                if asked:
                    place = self._answer(link, Wanted.from_json(json.loads(asked)))
                if place is not None:
                    lines.readline()  # until the worker ends or detaches
        except OSError:
            pass
        finally:
            self._end(link, place)

    def _answer(self, link: socket.socket, wanted: Wanted) -> Place | None:
        try:
            jvm = self._started(wanted)
            options, fixed = jvm.differences(wanted)
            if fixed:
                self._decline(link, jvm, fixed)
                return None
            place = jvm.open(options)
        except LakewrightError as error:
            _send(link, "refused", why=str(error))
            return None
        _send(link, "ready", port=place.port, secret=place.secret, tag=place.tag, pid=jvm.pid)
        return place

    def _decline(self, link: socket.socket, jvm: ResidentJvm, fixed: list[str]) -> None:
        if jvm.in_use:
            _send(link, "refused", why=f"another request uses a JVM that differs in {', '.join(fixed)}")
        else:
            log.info("the JVM is replaced: a request differs in %s", ", ".join(fixed))
            self._is_ending = True
            _send(link, "again")

    def _started(self, wanted: Wanted) -> ResidentJvm:
        with self._starting:
            if self._jvm is None:
                os.environ.clear()
                os.environ.update(wanted.environ)
                self._jvm = ResidentJvm(wanted)
                threading.Thread(target=self._watch, args=(self._jvm,), daemon=True).start()
                threading.Thread(target=self._report_heap, args=(self._jvm,), daemon=True).start()
            return self._jvm

    def _watch(self, jvm: ResidentJvm) -> None:
        """Inform all workers when the JVM has ended, and end with it."""
        code = jvm.process.wait()
        if not self._is_ending:
            log.warning("the server's JVM has ended, with code %s; the next request starts another", code)
        for link in tuple(self._links):
            _send(link, "ended", code=code)
        self._wake()

    def _report_heap(self, jvm: ResidentJvm) -> None:
        """Report every few seconds how much of the heap is used, until the JVM ends."""
        while not self._is_ending and not self._has_ended:
            try:
                self._send_line(b"heap %d %d\n" % jvm.heap())
            except Exception:  # the JVM, or the reader, is ending
                log.debug("the heap of the JVM is not reported", exc_info=True)
                return
            time.sleep(HEAP_SECONDS)

    def _wake(self) -> None:
        with suppress(OSError):  # the host is ending
            self._wake_up.send(b".")

    @property
    def _has_ended(self) -> bool:
        return self._jvm is not None and self._jvm.process.poll() is not None

    def _end(self, link: socket.socket, place: Place | None) -> None:
        if place is not None and self._jvm is not None and not self._has_ended:
            try:
                self._jvm.close(place)
                self._is_worn = self._is_worn_out(self._jvm)
            except Exception:  # the JVM may be ending; a place that stays open must not stop the host
                log.debug("a place in the JVM could not be closed", exc_info=True)
        link.close()
        self._links.discard(link)
        self._wake()

    def _is_worn_out(self, jvm: ResidentJvm) -> bool:
        return (
            jvm.served >= MOST_SERVED
            or self._clock() - self._begun >= MOST_SECONDS
            or jvm.heap_share() >= MOST_HEAP
        )

    def _stop(self) -> None:
        self._is_ending = True
        if self._jvm is not None and not self._has_ended:
            self._jvm.stop()


def _send(link: socket.socket, state: str, **more: object) -> None:
    with suppress(OSError):  # the worker has ended
        link.sendall(json.dumps({"state": state, **more}).encode() + b"\n")
