"""Work that a run has done in the background: its end waits for it only so long."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from queue import Full, Queue
from threading import Thread
from time import monotonic

__all__ = ["MAX_FAILURES", "MAX_WAITING", "BackgroundQueue"]

MAX_WAITING = 1_000
"""Pieces of work that may wait; further ones are dropped, so that slow receivers cannot use up memory."""

MAX_FAILURES = 3
"""Failures in a row after which a receiver is not tried again in the run."""


class BackgroundQueue:
    """Does work in a background thread, in the order in which it was added.

    Args:
        name: The name of the thread.
        seconds: How long `close` waits.
        max_waiting: How many pieces of work may wait.
    """

    def __init__(self, name: str, *, seconds: float, max_waiting: int = MAX_WAITING) -> None:
        self._name = name
        self._seconds = seconds
        self._waiting: Queue[Callable[[], None] | None] = Queue(max_waiting)
        self._thread: Thread | None = None
        self._dropped = 0
        self.is_cut_off = False

    def add(self, work: Callable[[], None]) -> None:
        """Add work, which raises no error."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        try:
            self._waiting.put_nowait(work)
        except Full:
            self._dropped += 1

    def close(self) -> int:
        """Wait a limited time for the work that is left; return how many pieces were dropped."""
        if self._thread is None:
            return 0
        deadline, ends = monotonic() + self._seconds, 0
        with suppress(Full):
            self._waiting.put(None, timeout=self._seconds)
            ends = 1
        self._thread.join(max(0.0, deadline - monotonic()))
        self.is_cut_off = self._thread.is_alive()
        return self._dropped + (self._waiting.qsize() - ends if self.is_cut_off else 0)

    def _run(self) -> None:
        while (work := self._waiting.get()) is not None and not self.is_cut_off:
            work()
