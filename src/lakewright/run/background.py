"""Calls that a run makes in the background: to hooks, and to a collector of lineage."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Full, Queue
from threading import Thread
from time import monotonic

from lakewright.manifest.payload import text_of
from lakewright.spec.words import counted

log = logging.getLogger(__name__)

MAX_WAITING = 1_000
"""Calls that may wait; further ones are dropped, so that slow receivers cannot use up memory."""

MAX_FAILURES = 3
"""Failures in a row after which a receiver is not called again in the run."""


class CallQueue:
    """Makes calls in a background thread, in the order they were added; none of them fails the run.

    Args:
        what: What is called, for warnings, such as `hooks`.
        seconds: How long `close` waits.
        max_waiting: How many calls may wait.
    """

    def __init__(self, what: str, *, seconds: float, max_waiting: int = MAX_WAITING) -> None:
        self._what = what
        self._seconds = seconds
        self._waiting: Queue[Callable[[], None] | None] = Queue(max_waiting)
        self._thread: Thread | None = None
        self._failures: Counter[str] = Counter()
        self._dropped = 0
        self._is_cut_off = False

    def send(self, receiver: str, call: Callable[[], object], label: str) -> None:
        """Add a call to a receiver, which warnings name by the label."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name=self._what, daemon=True)
            self._thread.start()
        try:
            self._waiting.put_nowait(partial(self._make, receiver, call, label))
        except Full:
            self._dropped += 1

    def close(self) -> None:
        """Wait a limited time for the remaining calls; those not made by then are dropped, with a warning."""
        if self._thread is None:
            return
        deadline, ends = monotonic() + self._seconds, 0
        with suppress(Full):
            self._waiting.put(None, timeout=self._seconds)
            ends = 1
        self._thread.join(max(0.0, deadline - monotonic()))
        self._is_cut_off = self._thread.is_alive()
        if left := self._dropped + (self._waiting.qsize() - ends if self._is_cut_off else 0):
            calls = f"{counted(left, 'call')} of {self._what} {'was' if left == 1 else 'were'} dropped"
            log.warning("%s, because earlier calls took too long", calls)

    def failed(self, receiver: str, reason: str) -> None:
        """Log a failure; after a few in a row the receiver is disabled."""
        self._failures[receiver] += 1
        log.warning("%s: %s", receiver, reason)
        if self._failures[receiver] == MAX_FAILURES:
            log.warning(
                "%s is disabled for the rest of the run after %d failures in a row", receiver, MAX_FAILURES
            )

    def is_disabled(self, receiver: str) -> bool:
        """Return whether a receiver has failed so often that it is no longer called."""
        return self._failures[receiver] >= MAX_FAILURES

    def _make(self, receiver: str, call: Callable[[], object], label: str) -> None:
        if self.is_disabled(receiver):
            return
        try:
            call()
            self._failures[receiver] = 0
        except Exception as error:  # a call must not fail the run
            self.failed(receiver, f"{label}: {text_of(error)}")

    def _run(self) -> None:
        while (call := self._waiting.get()) is not None and not self._is_cut_off:
            call()
