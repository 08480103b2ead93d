"""The thread that sends events. It can neither fail nor delay a run, whatever the collector does."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Thread
from time import monotonic

__all__ = ["Sender"]

log = logging.getLogger(__name__)

MAX_WAITING = 1_000
"""Events that may wait; further ones are dropped, so that a slow collector cannot use up memory."""

MAX_FAILURES = 3
"""Failures in a row after which no further events are sent in this run."""

CLOSE_SECONDS = 5.0
"""How long the end of a run waits for the events that are left; a collector that hangs is cut off."""


class Sender:
    """Sends events in a background thread, in the order they were added; failures are told once.

    Args:
        what: What is sent where, for warnings.
        max_waiting: How many events may wait.
        close_seconds: How long `close` waits.
    """

    def __init__(
        self, what: str, *, max_waiting: int = MAX_WAITING, close_seconds: float = CLOSE_SECONDS
    ) -> None:
        self._what = what
        self._close_seconds = close_seconds
        self._events: Queue[Callable[[], None] | None] = Queue(max_waiting)
        self._thread: Thread | None = None
        self._failures = 0
        self._lost = 0
        self._is_told = False
        self._is_cut_off = False

    def send(self, event: Callable[[], None]) -> None:
        """Add an event, which the thread makes and sends."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="openlineage", daemon=True)
            self._thread.start()
        try:
            self._events.put_nowait(event)
        except Full:
            self._lost += 1

    def close(self) -> None:
        """Wait a limited time for the remaining events; the others are dropped, with a warning."""
        if self._thread is None:
            return
        deadline = monotonic() + self._close_seconds
        with suppress(Full):
            self._events.put(None, timeout=self._close_seconds)
        self._thread.join(max(0.0, deadline - monotonic()))
        self._is_cut_off = self._thread.is_alive()
        lost = self._lost + (max(1, self._events.qsize()) if self._is_cut_off else 0)
        if lost and not self._is_told:
            log.warning("%s: %d events were not sent: it answers too slowly", self._what, lost)

    def _run(self) -> None:
        while (event := self._next()) is not None:
            if self._failures >= MAX_FAILURES or self._is_cut_off:
                self._lost += 1
                continue
            try:
                event()
                self._failures = 0
            except Exception as error:  # an event must not fail the run that it tells of
                self._failures += 1
                self._tell(error)

    def _next(self) -> Callable[[], None] | None:
        try:
            return self._events.get(timeout=None if not self._is_cut_off else 0)
        except Empty:
            return None

    def _tell(self, error: Exception) -> None:
        if not self._is_told and not self._is_cut_off:
            self._is_told = True
            log.warning("%s: events could not be sent, and the run goes on: %s", self._what, error)
