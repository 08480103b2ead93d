"""The time by a server that tells it with each answer, to the second."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from threading import Lock

from lakewright.errors import StoreUnavailable
from lakewright.stores.heartbeat import seconds_awake

__all__ = ["ServerClock"]

TICK = timedelta(microseconds=1)
"""By how much two times differ at least: versions of documents are made of them."""

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class ServerClock:
    """How far a server's clock is from this machine's counter, narrowed down with every answer.

    An answer dated `12:00:05` was given between that second and the next, and between the moments at which
    it was asked for and came in. So each answer bounds the difference; together they soon tell it to some
    milliseconds. The first one alone tells it to half a second.

    Args:
        counter: Seconds, counted by this machine, never backwards.
    """

    def __init__(self, counter: Callable[[], float] = seconds_awake) -> None:
        self.counter = counter
        self._lock = Lock()
        self._bounds: tuple[float, float] | None = None
        self._last = LONG_AGO

    def heard(self, date: str, *, asked: float, answered: float) -> None:
        """Take note of an answer's `Date`, and when, by the counter, it was asked for and came in."""
        told = parsedate_to_datetime(date).timestamp()
        low, high = told - answered, told + 1 - asked
        with self._lock:
            if self._bounds is not None and low < self._bounds[1] and high > self._bounds[0]:
                low, high = max(low, self._bounds[0]), min(high, self._bounds[1])
            elif self._bounds is not None:
                self._last = LONG_AGO  # the server's clock was set
            self._bounds = low, high

    def now(self) -> datetime:
        """Return the server's time, in UTC; always later than before unless its clock was set.

        Raises:
            StoreUnavailable: No answer has told the time yet.
        """
        with self._lock:
            if self._bounds is None:
                raise StoreUnavailable("the manifest's server tells no time: its answers have no Date")
            told = datetime.fromtimestamp(self.counter() + sum(self._bounds) / 2, UTC)
            self._last = max(self._last + TICK, told)
            return self._last
