"""Announcing and recording rewinds in the manifest."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.records import COUNTRIES, ITEM, REGIONS, Clock, claim, found, holder, ledger_of, numbered

from lakewright.errors import ItemLocked, LeaseHeld
from lakewright.manifest.lease import Lease, Leases, find_lease
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.record import State
from lakewright.manifest.rewind import Rewind, RewoundSlice
from lakewright.manifest.verdict import Verdict
from lakewright.manifest.watermarks import StoredWatermark, Watermark
from lakewright.testing import MemoryStore
from lakewright.upkeep.fsck import missing_watermarks

OTHER = "file:///lake/bronze/regions/2022-02-01.csv"
KEY = "table silver/regions"


class Stage:
    """A manifest with two slices, each processed by two applications."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = MemoryStore(self.clock)
        self.ids = numbered()
        self.ledger: Ledger = ledger_of(self.store, ids=self.ids)
        self.ledger.discover([found(), found("2022-02-01.csv")])
        for item, value in ((ITEM, 1), (OTHER, 2)):
            marks = {"watermarks": {"day": Watermark.of(value).as_json()}}
            self.ledger.processed(claim(self.ledger, item, token_counter=KEY), marks)
            self.ledger.processed(claim(self.ledger, item, COUNTRIES), {"metrics": {"inserted": value}})
        self.leases = Leases(self.store, holder(), self.ids)

    def lease(self) -> Lease:
        key = "write silver/regions"
        return find_lease(self.store, key) or self.leases.acquire(key)

    def announce(self) -> Rewind:
        return self.ledger.announce_rewind(KEY, "undo of x of regions", self.lease(), self.ids(), REGIONS)

    def day(self) -> StoredWatermark | None:
        return next(iter(self.ledger.watermarks.all(prefix=f"{REGIONS}/")), None)


def test_an_undone_slice_is_skipped_for_its_entity_alone_and_watermarks_go_back() -> None:
    stage = Stage()
    rewind = stage.announce()
    back = StoredWatermark(REGIONS, "day", Watermark.of(1), ITEM)
    undone = RewoundSlice(OTHER, 1, is_skipped=True)
    (item,) = stage.ledger.record_rewind(rewind, REGIONS, [undone], {"day": back}, "sent twice")

    assert item.revision == 2
    assert (item.verdict(REGIONS), item.verdict(COUNTRIES)) == (Verdict.SKIPPED, Verdict.PROCESSED)
    kept = [r for r in stage.store.records(OTHER) if r.state is State.PROCESSED][-1]
    assert (kept.application, kept.content["metrics"]) == (COUNTRIES, {"inserted": 2})
    day = stage.day()
    assert day is not None
    assert (day.watermark.value, day.item_id, day.reason) == (1, ITEM, "sent twice")
    assert stage.ledger.rewind_of(KEY) is None
    assert list(missing_watermarks(stage.store)) == []
    # Whoever records it once more writes nothing.
    assert stage.ledger.record_rewind(rewind, REGIONS, [undone], {"day": None}, "again") == ()
    assert stage.day() == day


def test_a_requeued_slice_is_ready_for_everyone_and_keeps_its_time() -> None:
    stage = Stage()
    note = {"processing_time": "2022-02-01T00:00:00+00:00"}
    (item,) = stage.ledger.record_rewind(
        stage.announce(), REGIONS, [RewoundSlice(OTHER, 1, note=note)], {"day": None}, "corrected"
    )
    assert (item.verdict(REGIONS), item.verdict(COUNTRIES)) == (Verdict.READY, Verdict.READY)
    assert item.new is not None
    assert item.new.note["processing_time"] == note["processing_time"]
    assert stage.day() is None
    again = stage.ledger.requeue(OTHER, "by hand")
    assert again.new is not None
    assert "processing_time" not in again.new.note


def test_a_slice_that_was_applied_again_has_a_new_revision_with_its_commit() -> None:
    stage = Stage()
    replayed = RewoundSlice(OTHER, 1, token=7, content={"slice": "2022-02-01.csv", "delta_version": 9})
    (item,) = stage.ledger.record_rewind(stage.announce(), REGIONS, [replayed], {}, "undo of x")
    assert (item.revision, item.tokens[REGIONS.key]) == (2, 7)
    assert (item.verdict(REGIONS), item.verdict(COUNTRIES)) == (Verdict.PROCESSED, Verdict.PROCESSED)
    content = [r for r in stage.store.records(OTHER) if r.application == REGIONS][-1].content
    assert (content["delta_version"], content["reason"]) == (9, "undo of x")


def test_a_commit_that_names_a_slice_twice_is_recorded() -> None:
    """An undo made such commits after a slice was processed twice; the entity then waited for ever."""
    stage = Stage()
    twice = [RewoundSlice(OTHER, 1, token=7, content={"delta_version": each}) for each in (8, 9)]
    (item,) = stage.ledger.record_rewind(stage.announce(), REGIONS, twice, {}, "undo of x")
    assert (item.revision, item.verdict(REGIONS)) == (2, Verdict.PROCESSED)
    content = [r for r in stage.store.records(OTHER) if r.application == REGIONS][-1].content
    assert content["delta_version"] == 9
    assert stage.ledger.rewind_of(KEY) is None


def test_a_slice_that_an_operator_has_changed_since_is_left_alone() -> None:
    stage = Stage()
    rewind = stage.announce()
    stage.ledger.requeue(OTHER, "by hand")
    undone = RewoundSlice(OTHER, 1, is_skipped=True)
    assert stage.ledger.record_rewind(rewind, REGIONS, [undone], {}, "late") == ()
    assert stage.ledger.item(OTHER).verdict(REGIONS) is Verdict.READY
    assert stage.ledger.rewind_of(KEY) is None


def test_only_one_rewind_of_a_table_is_announced_and_none_beside_a_slice() -> None:
    stage = Stage()
    stage.ledger.requeue(OTHER, "again")
    held = claim(stage.ledger, OTHER, token_counter=KEY)
    with pytest.raises(ItemLocked):
        stage.announce()
    assert stage.ledger.rewind_of(KEY) is None
    stage.ledger.give_back(held, "done")

    rewind = stage.announce()
    with pytest.raises(LeaseHeld, match="undo of x of regions by ann@here"):
        stage.ledger.announce_rewind(KEY, "rebuild of regions", stage.lease(), "another", REGIONS)
    stage.ledger.end_rewind(rewind)
    assert stage.ledger.rewind_of(KEY) is None


def test_a_rewind_is_alive_as_long_as_its_lease() -> None:
    stage = Stage()
    rewind = stage.announce()
    assert stage.ledger.is_rewinding(rewind)
    assert not ledger_of(stage.store, is_dead=lambda _: True).is_rewinding(rewind)
    stage.clock.time += timedelta(minutes=5)
    assert not stage.ledger.is_rewinding(rewind)
