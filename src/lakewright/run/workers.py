"""Threads that do a run's steps, so that the thread which decides is free to hear of signals.

They are daemons: a process that is to end at once doesn't wait for one that a call keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

__all__ = ["Workers"]

K = TypeVar("K")
R = TypeVar("R")


class Workers(Generic[K, R]):
    """At most so many threads; each does one piece of work after the other.

    Work must not raise; what it returns is told once, by `next_done`.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads: list[Thread] = []
        self._work: SimpleQueue[tuple[K, Callable[[], R]] | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[K, R]] = SimpleQueue()
        self.running: set[K] = set()

    @property
    def has_room(self) -> bool:
        """Whether a further piece of work would begin at once."""
        return len(self.running) < self._most

    def begin(self, key: K, work: Callable[[], R]) -> None:
        """Have a piece of work done."""
        self.running.add(key)
        if len(self._threads) < len(self.running):
            thread = Thread(target=self._run, name=f"worker-{len(self._threads) + 1}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._work.put((key, work))

    def next_done(self, timeout: float | None = None) -> tuple[K, R] | None:
        """Return key and result of a piece of work that has ended, or None if none does in time."""
        try:
            key, result = self._done.get(timeout=timeout)
        except Empty:
            return None
        self.running.discard(key)
        return key, result

    def close(self) -> None:
        """Let the threads end once they have nothing to do."""
        for _ in self._threads:
            self._work.put(None)

    def _run(self) -> None:
        while (piece := self._work.get()) is not None:
            key, work = piece
            self._done.put((key, work()))
