"""Renewal of leases while work is in progress, and detection in time when a renewal failed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from threading import Event, Lock, Thread
from typing import Self

from lakewright.errors import LeaseLost
from lakewright.manifest.lease import Lease, confirm, renew
from lakewright.manifest.payload import text_of
from lakewright.manifest.store import Store

log = logging.getLogger(__name__)


def seconds_awake() -> float:
    """Return a monotonic count of seconds that includes sleep of the machine, if the system has one."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


@dataclass(slots=True)
class _RenewedLease:
    """A lease that the heartbeat renews.

    Attributes:
        renewed: When the last successful renewal began, by this process's clock.
        lost: Why this process no longer holds it; None while it does.
    """

    lease: Lease
    renewed: float
    lost: LeaseLost | None = None


class Heartbeat:
    """A context manager that renews leases from its own thread, at a third of their duration.

    Args:
        store: Holds the leases.
        duration: How long a lease lasts without a renewal.
        clock: Counts seconds on this machine.
        on_loss: Called by the thread when a lease is lost; must not raise.
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
        self._kept: dict[str, _RenewedLease] = {}
        self._lock = Lock()
        self._ended = Event()
        self._thread = Thread(target=self._run, name="lakewright-heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join(self._duration.total_seconds() / 3)

    def keep(self, lease: Lease) -> None:
        """Start to renew a lease, which was acquired or renewed just now; one that is renewed stays so."""
        with self._lock:
            kept = self._kept.get(lease.key)
            if kept is not None and kept.lease.token == lease.token:
                return
            self._kept[lease.key] = _RenewedLease(lease, self._clock())

    def drop(self, lease: Lease) -> None:
        """Stop renewing a lease, which is released or about to be."""
        with self._lock:
            self._kept.pop(lease.key, None)

    def check(self, lease: Lease) -> None:
        """Raise an error unless the lease is held and was renewed in time; call it right before a commit.

        Raises:
            LeaseLost: The lease is lost, or this process was suspended for so long that it may be.
            StoreUnavailable: The store cannot be read.
        """
        kept = self._kept_for(lease)
        if kept.lost is not None:
            raise kept.lost
        confirm(self._store, kept.lease)
        if (lost := self._overdue(kept)) is not None:
            raise lost

    def loss(self, lease: Lease) -> LeaseLost | None:
        """Return why a lease counts as lost, as far as this process knows without asking the store."""
        kept = self._kept_for(lease)
        return kept.lost or self._overdue(kept)

    def _kept_for(self, lease: Lease) -> _RenewedLease:
        with self._lock:
            kept = self._kept.get(lease.key)
        if kept is None:
            raise LeaseLost(f"the lease on {lease.key} isn't being renewed", details={"key": lease.key})
        return kept

    def _overdue(self, kept: _RenewedLease) -> LeaseLost | None:
        idle = self._clock() - kept.renewed
        if idle < self._duration.total_seconds():
            return None
        return LeaseLost(
            f"the lease on {kept.lease.key} has not been renewed for {idle:.0f} s",
            remedy="Run again; the next run repeats what was not committed.",
            details={"key": kept.lease.key},
        )

    def beat(self) -> None:
        """Renew every lease once."""
        with self._lock:
            kept = list(self._kept.values())
        for each in kept:
            if each.lost is None:
                self._renew(each)

    def _renew(self, kept: _RenewedLease) -> None:
        begun = self._clock()
        try:
            kept.lease = renew(self._store, kept.lease, self._duration)
            kept.renewed = begun
        except LeaseLost as lost:
            kept.lost = lost
            self._on_loss()
        except Exception as error:  # the other leases must still be renewed; the next beat tries again
            log.warning("the lease on %s could not be renewed: %s", kept.lease.key, text_of(error))

    def _run(self) -> None:
        while not self._ended.wait(self._duration.total_seconds() / 3):
            self.beat()
