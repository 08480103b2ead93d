"""Leases on any key: `processing-manifest.md`, "State" (acquire a lock); leases are Lakewright's addition."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.records import MINUTE, Clock, holder, numbered

from lakewright.errors import LeaseHeld, LeaseLost, SequenceConflict
from lakewright.manifest.lease import LEASE, Holder, Lease, Leases, confirm, find_lease
from lakewright.manifest.store import Put, Write, Written
from lakewright.testing import MemoryStore

TABLE = "table:silver.regions"
PART = "table:silver.regions[month=2022-01]"


class Stage:
    def __init__(self) -> None:
        self.clock = Clock()
        self.store = MemoryStore(self.clock)
        self.ids = numbered()
        self.dead: set[int] = set()

    def leases(self, pid: int) -> Leases:
        return Leases(self.store, holder(f"run-{pid}", pid=pid), self.ids, MINUTE, self._is_dead)

    def _is_dead(self, who: Holder) -> bool:
        return who.pid in self.dead


def overlaps(key: str) -> bool:
    return key.startswith(TABLE)


def test_a_leased_key_is_refused_to_others_until_it_is_released() -> None:
    stage = Stage()
    lease = stage.leases(1).acquire(TABLE)
    with pytest.raises(LeaseHeld, match=r"being written by ann@here \(process 1, run run-1\)") as caught:
        stage.leases(2).acquire(TABLE)
    assert caught.value.details == {
        "key": TABLE,
        "holder": "ann@here (process 1, run run-1)",
        "run_id": "run-1",
        "since": "2026-01-01T00:00:00.000000Z",
        "expires": "2026-01-01T00:01:00.000000Z",
    }
    stage.leases(1).release(lease)
    assert stage.leases(2).acquire(TABLE).holder.run_id == "run-2"


def test_renewing_keeps_a_lease_alive() -> None:
    stage = Stage()
    lease = stage.leases(1).acquire(TABLE)
    for _ in range(5):
        stage.clock.advance(40)
        lease = stage.leases(1).renew(lease)
    with pytest.raises(LeaseHeld):
        stage.leases(2).acquire(TABLE)


@pytest.mark.parametrize("cause", ["expiry", "death"])
def test_an_expired_or_abandoned_lease_is_taken_over_and_lost_to_its_holder(cause: str) -> None:
    stage = Stage()
    first = stage.leases(1).acquire(TABLE)
    if cause == "expiry":
        stage.clock.advance(60)
    else:
        stage.dead.add(1)
    second = stage.leases(2).acquire(TABLE)
    with pytest.raises(LeaseLost, match="run-2"):
        stage.leases(1).renew(first)
    stage.leases(1).release(first)
    assert confirm(stage.store, second) == second


def test_a_released_lease_is_lost() -> None:
    stage = Stage()
    lease = stage.leases(1).acquire(TABLE)
    stage.leases(1).release(lease)
    with pytest.raises(LeaseLost, match="no one holds it now"):
        stage.leases(1).renew(lease)


@pytest.mark.parametrize(("first", "second"), [(TABLE, PART), (PART, TABLE)])
def test_keys_that_clash_exclude_each_other(first: str, second: str) -> None:
    stage = Stage()
    lease = stage.leases(1).acquire(first, clashes=overlaps)
    with pytest.raises(LeaseHeld, match="being written as"):
        stage.leases(2).acquire(second, clashes=overlaps)
    stage.leases(2).acquire("table:silver.countries", clashes=lambda key: "countries" in key)
    stage.leases(1).release(lease)
    assert stage.leases(2).acquire(second, clashes=overlaps).key == second


def test_a_clashing_lease_between_read_and_write_is_detected() -> None:
    class Meddling(MemoryStore):
        rival: Leases | None = None

        def write(self, write: Write) -> Written:
            rival, self.rival = self.rival, None
            if rival is not None:
                rival.acquire(PART, clashes=overlaps)
            return super().write(write)

    store = Meddling(Clock())
    ids = numbered()
    store.rival = Leases(store, holder("run-2", pid=2), ids)
    with pytest.raises(LeaseHeld, match="run-2"):
        Leases(store, holder("run-1"), ids).acquire(TABLE, clashes=overlaps)
    assert find_lease(store, TABLE) is None


@pytest.mark.parametrize("act", ["claim", "renew"])
def test_a_lost_acknowledgement_does_not_lose_the_lease(act: str) -> None:
    class Forgetful(MemoryStore):
        forgets = False

        def write(self, write: Write) -> Written:
            written = super().write(write)
            if self.forgets:
                self.forgets = False
                raise SequenceConflict("as a back end says that tried again after its first try had landed")
            return written

    store = Forgetful(Clock())
    leases = Leases(store, holder(), numbered())
    store.forgets = act == "claim"
    lease = leases.acquire(TABLE)
    store.forgets = act == "renew"
    renewed = leases.renew(lease)
    assert (renewed.token, renewed.holder) == (lease.token, holder())


def test_a_lease_is_the_same_after_a_round_trip_through_its_document() -> None:
    lease = Lease(TABLE, holder(), "t", Clock().time, Clock().time + timedelta(seconds=1, microseconds=1))
    written = MemoryStore(Clock()).write(Write(puts=(lease.put(expected=0),)))
    document = written.documents[0]
    assert (document.kind, document.key) == (LEASE, TABLE)
    assert Lease.from_document(document).renewed(lease.acquired, MINUTE).put(expected=1) == Put(
        LEASE,
        TABLE,
        {**document.value, "expires": "2026-01-01T00:01:00.000000Z"},
        1,
    )
