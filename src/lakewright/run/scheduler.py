"""Decide which step of a run is next, and run steps in threads.

A schedule hands out steps one after the other, or every step whose dependencies have finished.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from functools import partial
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Generic, Protocol, TypeVar

from lakewright.plan.dependencies import PhaseEnd
from lakewright.plan.step import StepKey
from lakewright.run.progress import ScheduledStep

__all__ = ["ParallelSchedule", "Schedule", "SequentialSchedule", "Workers"]

K = TypeVar("K")
R = TypeVar("R")


class Schedule(Protocol):
    """The steps of a run that have not finished; false once all have."""

    def __bool__(self) -> bool:
        """Return whether a step is left or in progress."""
        ...

    def next(self) -> ScheduledStep | None:
        """Return the next step whose dependencies have finished, or None if there is none now."""
        ...

    def put_back(self, step: ScheduledStep) -> None:
        """Put back the step that `next` returned last, so that `next` returns it again."""
        ...

    def done(self, step: ScheduledStep) -> None:
        """Mark a step as finished."""
        ...


class SequentialSchedule:
    """Hands out one step at a time, in the order of the plan."""

    def __init__(self, steps: Iterable[ScheduledStep]) -> None:
        self._left = deque(steps)
        self._current: ScheduledStep | None = None

    def __bool__(self) -> bool:
        """Return whether a step is left or in progress."""
        return bool(self._left) or self._current is not None

    def next(self) -> ScheduledStep | None:
        """Return the next step once the previous one has finished."""
        if self._current is not None or not self._left:
            return None
        self._current = self._left.popleft()
        return self._current

    def put_back(self, step: ScheduledStep) -> None:
        """Put the step back, so that `next` returns it again."""
        self._current = None
        self._left.appendleft(step)

    def done(self, step: ScheduledStep) -> None:
        """Mark a step as finished."""
        if step is self._current:
            self._current = None


class ParallelSchedule:
    """Hands out every step whose dependencies have finished; of several, the one first in the plan."""

    def __init__(
        self,
        steps: Iterable[ScheduledStep],
        before: Mapping[StepKey | PhaseEnd, Iterable[StepKey | PhaseEnd]],
    ) -> None:
        self._steps = list(steps)
        self._positions = {step.key: position for position, step in enumerate(self._steps)}
        self._sorter = TopologicalSorter(before)
        self._sorter.prepare()
        self._ready: list[int] = []
        self._take_ready()

    def __bool__(self) -> bool:
        """Return whether a step is left or in progress."""
        return self._sorter.is_active()

    def next(self) -> ScheduledStep | None:
        """Return the first step that may start."""
        return self._steps[heappop(self._ready)] if self._ready else None

    def put_back(self, step: ScheduledStep) -> None:
        """Put the step back, so that `next` returns it again."""
        heappush(self._ready, self._positions[step.key])

    def done(self, step: ScheduledStep) -> None:
        """Mark a step as finished; steps that waited only for it become ready."""
        self._sorter.done(step.key)
        self._take_ready()

    def _take_ready(self) -> None:
        waiting = list(self._sorter.get_ready())
        while waiting:
            key = waiting.pop()
            if isinstance(key, PhaseEnd):
                self._sorter.done(key)
                waiting.extend(self._sorter.get_ready())
            else:
                heappush(self._ready, self._positions[key])


WAKE_SECONDS = 0.5
"""How long a wait for work goes on without a look for signals.

Libraries such as Polars install handlers that resume an interrupted wait: Python would not hear Ctrl-C.
"""


class Workers(Generic[K, R]):
    """A pool of threads, so that the thread that schedules is free to receive signals.

    The threads are daemons: a process that must end does not wait for one that is blocked in a call.
    `next_done` returns each result once. Work that raises an error has that error as its result.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads: list[Thread] = []
        self._work: SimpleQueue[tuple[K, Callable[[], R]] | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[K, R | BaseException]] = SimpleQueue()
        self.running: set[K] = set()

    @property
    def has_room(self) -> bool:
        """Whether another piece of work would start immediately."""
        return len(self.running) < self._most

    def begin(self, key: K, work: Callable[[], R]) -> None:
        """Run a piece of work in a thread.

        Raises:
            RuntimeError: The system allows no further thread; the work does not run.
        """
        if len(self._threads) <= len(self.running):
            # In the caller's context, so that what it traces is inside of what the caller traces.
            run = partial(copy_context().run, self._run)
            thread = Thread(target=run, name=f"worker-{len(self._threads) + 1}", daemon=True)
            thread.start()
            self._threads.append(thread)
        self.running.add(key)
        self._work.put((key, work))

    def next_done(self, timeout: float | None = None) -> tuple[K, R | BaseException] | None:
        """Return the key and result of finished work, or None if none finishes within `timeout` seconds."""
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            left = WAKE_SECONDS if deadline is None else max(deadline - monotonic(), 0)
            try:
                key, result = self._done.get(timeout=min(left, WAKE_SECONDS))
            except Empty:
                if deadline is not None and monotonic() >= deadline:
                    return None
            else:
                self.running.discard(key)
                return key, result

    def close(self) -> None:
        """End the threads once they have no work left."""
        for _ in self._threads:
            self._work.put(None)

    def _run(self) -> None:
        while (piece := self._work.get()) is not None:
            key, work = piece
            try:
                ended: R | BaseException = work()
            except BaseException as error:  # else `next_done` would wait for this work without end
                ended = error
            self._done.put((key, ended))
