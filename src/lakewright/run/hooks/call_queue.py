"""The queue of hook calls, which a background thread makes one after the other; errors are only logged."""

from __future__ import annotations

import logging
from collections import Counter
from queue import Full, Queue
from threading import Thread
from time import monotonic

from lakewright.manifest.payload import text_of
from lakewright.run.hooks.call import Call
from lakewright.spec.words import counted

__all__ = ["CallQueue"]

log = logging.getLogger(__name__)

SECONDS = 10.0
"""Time limit of one call, and of the wait for remaining calls at the end of a run."""

MAX_WAITING = 1_000
"""Calls that may wait; further ones are dropped, so that slow hooks cannot use up memory."""

MAX_FAILURES = 3
"""Failures in a row after which a hook is disabled for the rest of the run."""


class CallQueue:
    """Makes calls in a background thread, in the order they were added.

    Args:
        seconds: Time limit of one call, and of the wait in `close`.
        max_waiting: Number of calls that may wait; further ones are dropped.
    """

    def __init__(self, *, seconds: float = SECONDS, max_waiting: int = MAX_WAITING) -> None:
        self._seconds = seconds
        self._calls: Queue[tuple[str, Call] | None] = Queue(max_waiting)
        self._failures: Counter[str] = Counter()
        self._dropped = 0
        self._thread: Thread | None = None

    def send(self, hook: str, call: Call) -> None:
        """Add a call of a hook to the queue."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="hooks", daemon=True)
            self._thread.start()
        try:
            self._calls.put_nowait((hook, call))
        except Full:
            self._dropped += 1

    def close(self) -> None:
        """Wait a limited time for the remaining calls; those not made by then are dropped, with a warning."""
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
            told = f"{counted(left, 'call')} of hooks {'was' if left == 1 else 'were'} dropped"
            log.warning("%s, because earlier calls took too long", told)

    def _run(self) -> None:
        while (entry := self._calls.get()) is not None:
            hook, call = entry
            if not self.is_disabled(hook):
                self._make(hook, call)

    def _make(self, hook: str, call: Call) -> None:
        try:
            call.make(self._seconds)
            self._failures[hook] = 0
        except Exception as error:  # an error in a hook must not fail the run
            self.failed(hook, f"{call.label}: {text_of(error)}")

    def failed(self, hook: str, reason: str) -> None:
        """Log the failure of a hook; after a few in a row it is disabled."""
        self._failures[hook] += 1
        log.warning("%s: %s", hook, reason)
        if self._failures[hook] == MAX_FAILURES:
            log.warning(
                "%s is disabled for the rest of the run after %d failures in a row", hook, MAX_FAILURES
            )

    def is_disabled(self, hook: str) -> bool:
        """Return whether a hook has failed so often that it is no longer called."""
        return self._failures[hook] >= MAX_FAILURES
