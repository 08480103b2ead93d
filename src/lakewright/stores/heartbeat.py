"""Keeping leases alive while work goes on, and noticing in time when that failed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self

from lakewright.errors import LeaseLost, StoreUnavailable
from lakewright.manifest.lease import Lease, confirm, renew
from lakewright.manifest.store import Store

__all__ = ["Heartbeat", "seconds_awake"]

log = logging.getLogger(__name__)


def seconds_awake() -> float:
    """Return seconds that pass also while the machine sleeps, where it tells; never backwards."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


@dataclass(slots=True)
class _Kept:
    """A lease that is kept.

    Attributes:
        renewed: When the last renewal that succeeded was begun, by this process's clock.
        lost: Why it isn't ours any more.
    """

    lease: Lease
    renewed: float
    lost: LeaseLost | None = None


class Heartbeat:
    """Renews leases from a thread of its own, at a third of their duration, while its block runs.

    Args:
        store: Where the leases are.
        duration: How long a lease lasts without being renewed.
        clock: Seconds, counted by this machine.
        on_loss: Is told, by that thread, that a lease isn't ours any more; must not raise.
    """

    def __init__(
        self,
        store: Store,
        duration: timedelta,
        *,
        clock: Callable[[], float] = seconds_awake,
        on_loss: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._duration = duration
        self._clock = clock
        self._on_loss = on_loss
        self._kept: dict[str, _Kept] = {}
        self._lock = Lock()
        self._ended = Event()
        self._thread = Thread(target=self._beat_on, name="lakewright-heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join(self._duration.total_seconds() / 3)

    def keep(self, lease: Lease) -> None:
        """Renew a lease from now on; it was taken or renewed just now."""
        with self._lock:
            self._kept[lease.key] = _Kept(lease, self._clock())

    def drop(self, lease: Lease) -> None:
        """Leave a lease alone from now on; it is given back, or is about to be."""
        with self._lock:
            self._kept.pop(lease.key, None)

    def check(self, lease: Lease) -> None:
        """Return only if the lease is still held and was renewed in time; to be called right before a commit.

        Raises:
            LeaseLost: It is held no more, or this process stood still for so long that it may be.
            StoreUnavailable: The store can't be asked.
        """
        with self._lock:
            kept = self._kept.get(lease.key)
        if kept is None:
            raise LeaseLost(f"the lease on {lease.key} isn't kept", details={"key": lease.key})
        if kept.lost is not None:
            raise kept.lost
        confirm(self._store, kept.lease)
        idle = self._clock() - kept.renewed
        if idle >= self._duration.total_seconds():
            raise LeaseLost(
                f"the lease on {lease.key} has not been renewed for {idle:.0f} s",
                remedy="Run again: what was not committed is done then.",
                details={"key": lease.key},
            )

    def beat(self) -> None:
        """Renew every lease that is kept, once."""
        with self._lock:
            kept = list(self._kept.values())
        for each in kept:
            if each.lost is None:
                self._renew(each)

    def _renew(self, kept: _Kept) -> None:
        begun = self._clock()
        try:
            kept.lease = renew(self._store, kept.lease, self._duration)
            kept.renewed = begun
        except LeaseLost as lost:
            kept.lost = lost
            self._on_loss()
        except StoreUnavailable as error:
            log.warning("the lease on %s could not be renewed: %s", kept.lease.key, error)

    def _beat_on(self) -> None:
        while not self._ended.wait(self._duration.total_seconds() / 3):
            self.beat()
