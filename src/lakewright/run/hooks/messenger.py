"""Making hooks' calls beside the run: in order, one at a time, never for long, and never to its harm."""

from __future__ import annotations

import logging
from collections import Counter
from queue import Full, Queue
from threading import Thread
from time import monotonic

from lakewright.run.hooks.call import Call

__all__ = ["Messenger"]

log = logging.getLogger(__name__)

SECONDS = 10.0
"""How long one call may take, and how long a run waits at its end for those that are left."""

MOST_WAITING = 1_000
MOST_FAILURES = 3
"""Failures in a row after which a hook is left alone for the rest of the run."""


class Messenger:
    """A thread that makes calls.

    Args:
        seconds: How long one call may take, and how long `close` waits.
        most_waiting: Calls beyond so many are dropped.
    """

    def __init__(self, *, seconds: float = SECONDS, most_waiting: int = MOST_WAITING) -> None:
        self._seconds = seconds
        self._calls: Queue[tuple[str, Call] | None] = Queue(most_waiting)
        self._failures: Counter[str] = Counter()
        self._dropped = 0
        self._thread: Thread | None = None

    def send(self, hook: str, call: Call) -> None:
        """Have a call made on behalf of a hook, soon."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="hooks", daemon=True)
            self._thread.start()
        try:
            self._calls.put_nowait((hook, call))
        except Full:
            self._dropped += 1

    def close(self) -> None:
        """Wait a while for the calls that are left; what isn't made by then is dropped, with a warning."""
        if self._thread is None:
            return
        deadline = monotonic() + self._seconds
        try:
            self._calls.put(None, timeout=self._seconds)
            self._thread.join(max(0.0, deadline - monotonic()))
        except Full:
            pass
        left = self._dropped + (self._calls.qsize() if self._thread.is_alive() else 0)
        if left:
            log.warning("%d calls of hooks were dropped: those before them took too long", left)

    def _run(self) -> None:
        while (piece := self._calls.get()) is not None:
            hook, call = piece
            if not self.is_left_alone(hook):
                self._make(hook, call)

    def _make(self, hook: str, call: Call) -> None:
        try:
            call.make(self._seconds)
            self._failures[hook] = 0
        except Exception as error:  # whatever a hook meets, the run goes on
            self.failed(hook, f"{call.label}: {error}")

    def failed(self, hook: str, why: str) -> None:
        """Take note that a hook failed; after a few times in a row it is left alone."""
        self._failures[hook] += 1
        log.warning("%s: %s", hook, why)
        if self._failures[hook] == MOST_FAILURES:
            log.warning("%s is left alone for the rest of the run", hook)

    def is_left_alone(self, hook: str) -> bool:
        """Return whether a hook has failed so often that it is called no more."""
        return self._failures[hook] >= MOST_FAILURES
