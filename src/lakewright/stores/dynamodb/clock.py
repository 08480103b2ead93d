"""The time of a server whose answers are dated to the second."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from threading import Lock

from lakewright.errors import StoreUnavailable
from lakewright.stores.heartbeat import seconds_awake

__all__ = ["ServerClock"]

TICK = timedelta(microseconds=1)
"""The least difference between two times: versions of documents are derived from them."""

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class ServerClock:
    """The difference between a server's clock and this machine's counter, narrowed by every answer.

    An answer dated `12:00:05` was given between that second and the next, and between the request and the
    arrival of the answer. So each answer bounds the difference: the first one to half a second, several to a
    few milliseconds.

    Args:
        counter: Counts seconds on this machine, never backwards.
    """

    def __init__(self, counter: Callable[[], float] = seconds_awake) -> None:
        self.counter = counter
        self._lock = Lock()
        self._bounds: tuple[float, float] | None = None
        self._last = LONG_AGO

    def observe(self, date: str, *, asked: float, answered: float) -> None:
        """Narrow the difference by an answer's `Date`.

        Args:
            date: The value of the header.
            asked: The counter when the request was sent.
            answered: The counter when the answer arrived.
        """
        dated = parsedate_to_datetime(date).timestamp()
        low, high = dated - answered, dated + 1 - asked
        with self._lock:
            if self._bounds is not None and low < self._bounds[1] and high > self._bounds[0]:
                low, high = max(low, self._bounds[0]), min(high, self._bounds[1])
            elif self._bounds is not None:
                self._last = LONG_AGO  # the server's clock was set back or forward
            self._bounds = low, high

    def now(self) -> datetime:
        """Return the server's time, in UTC; always later than the one before, unless that clock was set.

        Raises:
            StoreUnavailable: No answer has been dated yet.
        """
        with self._lock:
            if self._bounds is None:
                raise StoreUnavailable(
                    "the time of the manifest's server is unknown: its answers have no Date header"
                )
            estimate = datetime.fromtimestamp(self.counter() + sum(self._bounds) / 2, UTC)
            self._last = max(self._last + TICK, estimate)
            return self._last
