"""Leases: which process may write something, until when, and how another one takes over.

A lease is a document in the store; its key is what it covers: an item id or another resource. Its times are
the store's. The holder renews it at a third of its duration; a holder that cannot renew it must stop before
its commit. A lease that has expired, or whose holder is an ended process of this host, may be taken over.

Source: `processing-manifest.md`, "State" (Processing acquires a lock). Leases are Lakewright's addition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from lakewright.errors import LeaseHeld, LeaseLost, SequenceConflict
from lakewright.manifest.plain_values import document_of
from lakewright.manifest.record import format_instant, parse_instant
from lakewright.manifest.store import Document, Put, Store, Write

LEASE = "lease"
"""The kind of the documents that hold leases; the key is what is leased: an item id or a resource."""

GATE = ("lease_gate", "claims")
"""The document that every acquisition writes, so that two of them for overlapping resources conflict."""

MOST_RACES = 100
"""Maximum attempts at a write that other processes overtake; for each failed one, another has succeeded."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds leases.

    Attributes:
        started: When the process started, as its operating system reports it. It distinguishes the holder
            from a later process with the same id.
    """

    host: str
    pid: int
    started: str
    run_id: str
    user: str = ""

    def __str__(self) -> str:
        return f"{self.user or 'process'}@{self.host} (process {self.pid}, run {self.run_id})"


IsDead = Callable[[Holder], bool]
"""Returns whether a holder is a process of this host that has ended; False for holders on other hosts."""


def assume_alive(_holder: Holder) -> bool:
    """Return False for every holder, so that leases end only by expiring."""
    return False


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one holder to a key until `expires`; `token` identifies this acquisition."""

    key: str
    holder: Holder
    token: str
    acquired: datetime
    expires: datetime
    version: int = 0

    def is_expired(self, now: datetime) -> bool:
        """Return whether the lease has expired by the store's clock."""
        return self.expires <= now

    def put(self, *, expected: int | None) -> Put:
        """Return the put that saves this lease if its document has the expected version."""
        value = document_of(self, "holder", "token", "acquired", "expires")
        return Put(LEASE, self.key, value, expected)

    def renewed(self, now: datetime, duration: timedelta) -> Lease:
        """Return the lease as a heartbeat at `now` extends it."""
        return replace(self, expires=now + duration)

    @classmethod
    def from_document(cls, document: Document) -> Lease:
        """Return the lease that a document holds."""
        value: Mapping[str, Any] = document.value
        return cls(
            key=document.key,
            holder=Holder(**value["holder"]),
            token=value["token"],
            acquired=parse_instant(value["acquired"]),
            expires=parse_instant(value["expires"]),
            version=document.version,
        )


@dataclass(frozen=True, slots=True)
class Leases:
    """The leases of one process.

    Attributes:
        ids: Returns a token that no lease has had.
        duration: How long a lease lasts without a renewal.
        is_dead: Returns whether a holder is a process of this host that has ended.
    """

    store: Store
    holder: Holder
    ids: Callable[[], str]
    duration: timedelta = timedelta(seconds=60)
    is_dead: IsDead = assume_alive

    def acquire(self, key: str, *, clashes: Callable[[str], bool] | None = None) -> Lease:
        """Return the lease on `key`, acquired without waiting.

        Args:
            key: The item id or resource to lease.
            clashes: Returns whether another leased key overlaps with this one.

        Raises:
            LeaseHeld: Another holder has the key, or one that clashes.
        """
        token = self.ids()
        for _ in range(MOST_RACES):
            gate = self.store.document(*GATE)
            present = self._present(key, clashes, token)
            if present is not None and present.token == token:
                return present
            now = self.store.now()
            lease = Lease(key, self.holder, token, now, now + self.duration)
            puts = (
                lease.put(expected=present.version if present else 0),
                Put(*GATE, {}, gate.version if gate else 0),
            )
            try:
                return Lease.from_document(self.store.write(Write(puts=puts)).documents[0])
            except SequenceConflict:
                continue
        raise LeaseHeld(f"too many processes acquire {key} at once", details={"key": key})

    def _present(self, key: str, clashes: Callable[[str], bool] | None, token: str) -> Lease | None:
        """Return the present lease on `key`, if it is this process's or may be taken over.

        Raises:
            LeaseHeld: Another holder has the key, or one that clashes.
        """
        present = find_lease(self.store, key)
        if clashes is None:
            rivals = [present] if present else []
        else:
            leases = map(Lease.from_document, self.store.documents(LEASE))
            rivals = [lease for lease in leases if lease.key == key or clashes(lease.key)]
        now = self.store.now()
        for rival in rivals:
            if rival.token != token and not rival.is_expired(now) and not self.is_dead(rival.holder):
                raise _held_error(key, rival)
        return present

    def renew(self, lease: Lease) -> Lease:
        """Return the lease, renewed.

        Raises:
            LeaseLost: Another holder took the lease over, or it was released.
        """
        return renew(self.store, lease, self.duration)

    def release(self, lease: Lease) -> None:
        """Release the lease if it is still held."""
        present = find_lease(self.store, lease.key)
        if present is None or present.token != lease.token:
            return
        # If another holder takes it over in between, it must stay.
        with suppress(SequenceConflict):
            self.store.write(Write(puts=(Put(LEASE, lease.key, None, present.version),)))


def find_lease(store: Store, key: str) -> Lease | None:
    """Return the lease on `key`, expired or not, or None."""
    document = store.document(LEASE, key)
    return None if document is None else Lease.from_document(document)


def renew(store: Store, lease: Lease, duration: timedelta) -> Lease:
    """Return the lease, renewed.

    Raises:
        LeaseLost: Another holder took the lease over, or it was released.
    """
    present = confirm(store, lease)
    renewed = present.renewed(store.now(), duration)
    try:
        written = store.write(Write(puts=(renewed.put(expected=present.version),)))
    except SequenceConflict:
        return confirm(store, lease)
    return Lease.from_document(written.documents[0])


def confirm(store: Store, lease: Lease) -> Lease:
    """Return the lease as the store holds it now.

    Raises:
        LeaseLost: Another holder took the lease over, or it was released.
    """
    present = find_lease(store, lease.key)
    if present is None or present.token != lease.token:
        raise _lost_error(lease, present)
    return present


def _held_error(key: str, rival: Lease) -> LeaseHeld:
    since = format_instant(rival.acquired)
    as_what = "" if rival.key == key else f" as {rival.key}"
    return LeaseHeld(
        f"{key} is being written{as_what} by {rival.holder} since {since}",
        remedy="Wait for that run to end. If its process has ended, the lease expires by itself "
        f"at {format_instant(rival.expires)}.",
        details={
            "key": rival.key,
            "holder": str(rival.holder),
            "run_id": rival.holder.run_id,
            "since": since,
            "expires": format_instant(rival.expires),
        },
    )


def _lost_error(lease: Lease, present: Lease | None) -> LeaseLost:
    now_with = "no one holds it now" if present is None else f"{present.holder} holds it now"
    return LeaseLost(
        f"the lease on {lease.key} is lost: {now_with}",
        remedy="Run again; the next run repeats what was not committed.",
        details={"key": lease.key, "holder": None if present is None else str(present.holder)},
    )
