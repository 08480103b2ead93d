"""Claiming, keeping and giving back leases, on items or on anything else that has a key.

Times are the store's. A lease that has run out, or whose holder is a dead process of this host, can be taken
over.

Source: `processing-manifest.md`, "State" (Processing acquires a lock); leases are Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from lakewright.errors import LeaseHeld, LeaseLost, SequenceConflict
from lakewright.manifest.lease import LEASE, Holder, Lease
from lakewright.manifest.lock import IsDead, knows_of_no_death
from lakewright.manifest.record import format_instant
from lakewright.manifest.store import Put, Store, Write

__all__ = ["Leases", "confirm", "find_lease", "release", "renew"]

GATE = ("lease_gate", "claims")
"""Kind and key of the document written with each claim: clashing ones can't pass each other unseen."""

MOST_RACES = 100
"""Attempts at a write that others get in the way of; each time another one got through."""


@dataclass(frozen=True, slots=True)
class Leases:
    """Leases for one process.

    Attributes:
        ids: Gives a token that no lease has had.
        duration: How long a lease lasts without being renewed.
        is_dead: Tells whether a holder is a process of this host that has ended.
    """

    store: Store
    holder: Holder
    ids: Callable[[], str]
    duration: timedelta = timedelta(seconds=60)
    is_dead: IsDead = knows_of_no_death

    def claim(self, key: str, *, clashes: Callable[[str], bool] | None = None) -> Lease:
        """Return the lease on `key`, taken at once or not at all.

        Args:
            key: What is leased.
            clashes: Tells of another leased key whether it concerns the same thing, in part or whole.

        Raises:
            LeaseHeld: Somebody else has it, or a key that clashes.
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
        raise LeaseHeld(f"{key} is claimed by too many at once", details={"key": key})

    def _present(self, key: str, clashes: Callable[[str], bool] | None, token: str) -> Lease | None:
        """Return the lease on `key`, ours or one to take over, if there is one; raise for a living one."""
        present = find_lease(self.store, key)
        if clashes is None:
            rivals = [present] if present else []
        else:
            leases = map(Lease.from_document, self.store.documents(LEASE))
            rivals = [lease for lease in leases if lease.key == key or clashes(lease.key)]
        now = self.store.now()
        for rival in rivals:
            if rival.token != token and not rival.is_expired(now) and not self.is_dead(rival.holder):
                raise _held(key, rival)
        return present

    def renew(self, lease: Lease) -> Lease:
        """Return the lease as it stands after a heartbeat.

        Raises:
            LeaseLost: Somebody else took it over, or let it go.
        """
        return renew(self.store, lease, self.duration)

    def release(self, lease: Lease) -> None:
        """Give the lease back, if it is still held."""
        release(self.store, lease)


def find_lease(store: Store, key: str) -> Lease | None:
    """Return the lease on `key`, be it alive or not, or None."""
    document = store.document(LEASE, key)
    return None if document is None else Lease.from_document(document)


def renew(store: Store, lease: Lease, duration: timedelta) -> Lease:
    """Return the lease as it stands after a heartbeat.

    Raises:
        LeaseLost: Somebody else took it over, or let it go.
    """
    present = confirm(store, lease)
    renewed = present.renewed(store.now(), duration)
    try:
        written = store.write(Write(puts=(renewed.put(expected=present.version),)))
    except SequenceConflict:
        return confirm(store, lease)
    return Lease.from_document(written.documents[0])


def confirm(store: Store, lease: Lease) -> Lease:
    """Return the lease as the store has it now.

    Raises:
        LeaseLost: Somebody else took it over, or let it go.
    """
    present = find_lease(store, lease.key)
    if present is None or present.token != lease.token:
        raise _lost(lease, present)
    return present


def release(store: Store, lease: Lease) -> None:
    """Give a lease back, if it is still held."""
    present = find_lease(store, lease.key)
    if present is None or present.token != lease.token:
        return
    try:
        store.write(Write(puts=(Put(LEASE, lease.key, None, present.version),)))
    except SequenceConflict:
        return  # somebody took it over in between: it isn't ours to remove


def _held(key: str, rival: Lease) -> LeaseHeld:
    since = format_instant(rival.acquired)
    as_what = "" if rival.key == key else f" as {rival.key}"
    return LeaseHeld(
        f"{key} is being written{as_what} by {rival.holder} since {since}",
        remedy="Wait for that run to end; if its process is gone, the lease runs out by itself "
        f"at {format_instant(rival.expires)}.",
        details={
            "key": rival.key,
            "holder": str(rival.holder),
            "run_id": rival.holder.run_id,
            "since": since,
            "expires": format_instant(rival.expires),
        },
    )


def _lost(lease: Lease, present: Lease | None) -> LeaseLost:
    now_with = "nobody holds it now" if present is None else f"{present.holder} holds it now"
    return LeaseLost(
        f"the lease on {lease.key} is lost: {now_with}",
        remedy="Run again: what was not committed is done then.",
        details={"key": lease.key, "holder": None if present is None else str(present.holder)},
    )
