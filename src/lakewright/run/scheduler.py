"""What of a run is next: one step after the other, or all that nothing keeps back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from typing import Protocol

from lakewright.plan.dependencies import PhaseEnd
from lakewright.plan.step import StepKey
from lakewright.run.progress import Turn

__all__ = ["Agenda", "InOrder", "SideBySide"]


class Agenda(Protocol):
    """Steps that are still to be done or refused; true while there are any."""

    def __bool__(self) -> bool:
        """Return whether a step is left, be it at hand."""
        ...

    def next(self) -> Turn | None:
        """Take the first step before which nothing must end any more; None where there is none now."""
        ...

    def put_back(self, turn: Turn) -> None:
        """Take back the step that was given last."""
        ...

    def done(self, turn: Turn) -> None:
        """Take note that a step has ended."""
        ...


class InOrder:
    """Steps one after the other, in the order of the plan."""

    def __init__(self, turns: Iterable[Turn]) -> None:
        self._left = deque(turns)
        self._at_hand: Turn | None = None

    def __bool__(self) -> bool:
        """Return whether a step is left."""
        return bool(self._left) or self._at_hand is not None

    def next(self) -> Turn | None:
        """Take the next step, once the one before has ended."""
        if self._at_hand is not None or not self._left:
            return None
        self._at_hand = self._left.popleft()
        return self._at_hand

    def put_back(self, turn: Turn) -> None:
        """Give the step again next time."""
        self._at_hand = None
        self._left.appendleft(turn)

    def done(self, turn: Turn) -> None:
        """Have the next step come."""
        if turn is self._at_hand:
            self._at_hand = None


class SideBySide:
    """Steps as soon as all that must end before them has; of several the first of the plan."""

    def __init__(
        self, turns: Iterable[Turn], before: Mapping[StepKey | PhaseEnd, Iterable[StepKey | PhaseEnd]]
    ) -> None:
        self._turns = list(turns)
        self._positions = {turn.key: position for position, turn in enumerate(self._turns)}
        self._sorter = TopologicalSorter(before)
        self._sorter.prepare()
        self._ready: list[int] = []
        self._take_ready()

    def __bool__(self) -> bool:
        """Return whether a step is left."""
        return self._sorter.is_active()

    def next(self) -> Turn | None:
        """Take the first step that may begin."""
        return self._turns[heappop(self._ready)] if self._ready else None

    def put_back(self, turn: Turn) -> None:
        """Give the step again next time."""
        heappush(self._ready, self._positions[turn.key])

    def done(self, turn: Turn) -> None:
        """Have those steps come that waited for this one alone."""
        self._sorter.done(turn.key)
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
