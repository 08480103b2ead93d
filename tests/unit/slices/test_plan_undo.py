"""What an undo plans and refuses, and what is recovered of it: issue 15, part 1. No Spark is started."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from tests.unit.slices.test_recover_from_log import Place, names, pa

from lakewright.errors import DataLossError, ItemFailed, SliceError, UsageError
from lakewright.manifest.item import Verdict
from lakewright.manifest.payload import failure
from lakewright.slices.rewind.known_slices import name_of
from lakewright.slices.rewind.plan_rebuild import RebuildStart, plan_rebuild
from lakewright.slices.rewind.plan_undo import UndoPlan, plan_undo

TIME = "2024-05-0{}T00:00:00+00:00"


def place_of(folder: Path, *slices: str) -> Place:
    """Return a place whose slices were all processed, in order."""
    place = Place(folder, *slices)
    for number, name in enumerate(slices, 1):
        place.commit(number, name, strategy="merge", processingTime=TIME.format(number))
    assert place.look().ready == ()
    return place


def restored(place: Place, **told: Any) -> None:
    """Put the table back as an undo does."""
    content = {"app": f"{place.application}/undo", "number": 2, "rewind": told}
    properties = CommitProperties({"userMetadata": json.dumps(content)})
    DeltaTable(place.silver).restore(told["base"], commit_properties=properties)


def undo_of(place: Place, name: str, **options: Any) -> UndoPlan:
    return plan_undo(place.bench, place.entity, name, **options)


def by_hand(place: Place) -> None:
    write_deltalake(place.silver, pa.table({"id": [99]}), mode="append")


def replayed(plan: UndoPlan) -> list[str]:
    return [name_of(each) for each in plan.replayed]


def test_the_table_goes_back_to_the_version_before_the_slice(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2", "s3")
    found = [(undo_of(place, name).base, replayed(undo_of(place, name))) for name in ("s1", "s2", "s3")]
    assert found == [(None, ["s2", "s3"]), (0, ["s3"]), (1, [])]
    assert undo_of(place, "s2").version == 1
    again = undo_of(place, "s2", is_requeued=True)
    assert (again.base, replayed(again), [name_of(each) for each in again.later]) == (0, [], ["s3"])


def test_commits_of_others_are_named_and_lost_only_if_allowed(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2")
    by_hand(place)
    with pytest.raises(DataLossError, match=r"1 commit of other writers .* version 2 \(WRITE\)"):
        undo_of(place, "s2")
    assert [commit.version for commit in undo_of(place, "s2", is_over_foreign=True).foreign] == [2]
    with pytest.raises(DataLossError, match="no slice made"):
        plan_rebuild(place.bench, place.entity, RebuildStart())


def test_slices_that_must_be_applied_again_are_named_if_bronze_lacks_them(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2", "s3", "s4")
    (place.bronze / "s3").unlink()
    (place.bronze / "s4").write_text("something else, and longer")
    with pytest.raises(SliceError, match="s3 is gone; s4 has changed since it was processed") as raised:
        undo_of(place, "s2")
    with pytest.raises(SliceError, match="s3 is gone"):
        plan_rebuild(place.bench, place.entity, RebuildStart())
    assert replayed(undo_of(place, "s4")) == []
    assert f"`lakewright manifest requeue {place.entity.name}/s4 --cascade`" in (raised.value.remedy or "")


def fail(place: Place, name: str) -> None:
    """Let the entity fail with a ready slice."""
    (ready,) = (item for item in place.look().ready if item.item_id == place.item(name).item_id)
    claim = place.ledger.acquire(
        ready.item_id,
        place.application,
        place.bench.holder,
        duration=timedelta(seconds=60),
        token_counter=None,
    )
    place.ledger.failed(claim, failure(SliceError(f"{name} is empty", remedy="Deliver it again.")))


def test_of_a_slice_that_failed_and_is_not_in_the_table_there_is_nothing_to_undo(tmp_path: Path) -> None:
    """The table's log tells it: a slice that was undone, requeued and failed is in the table no more."""
    place = place_of(tmp_path, "s1")
    place.put("s2")
    fail(place, "s2")
    with pytest.raises(UsageError, match="s2 of orders failed and is not in the table") as caught:
        undo_of(place, "s2")
    assert caught.value.remedy == "Deliver it again. Then `lakewright manifest resolve orders/s2`."

    (tmp_path / "again").mkdir()
    again = place_of(tmp_path / "again", "s1", "s2")
    again.ledger.requeue(again.item("s2").item_id, "corrected")
    fail(again, "s2")
    with pytest.raises(ItemFailed):  # its former content is in the table
        undo_of(again, "s2")
    restored(again, base=0)
    with pytest.raises(UsageError, match="s2 of orders failed and is not in the table"):
        undo_of(again, "s2")


def test_files_that_vacuum_removed_are_noticed_beforehand(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2")
    file = DeltaTable(place.silver, version=0).file_uris()[0]
    Path(file.removeprefix("file://")).unlink()
    with pytest.raises(
        DataLossError, match=r"version 0 of .* is not whole any more: 1 file of it was removed"
    ) as caught:
        undo_of(place, "s2")
    assert "lakewright rebuild orders" in str(caught.value.remedy)


def test_only_a_processed_slice_is_undone(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1")
    place.put("s2")
    place.look()
    with pytest.raises(UsageError, match="s2 of orders is not in the table: it is ready"):
        undo_of(place, "s2")
    with pytest.raises(UsageError, match="it is unknown"):
        undo_of(place, "s9")


def test_a_rebuild_starts_with_a_slice_or_a_time(tmp_path: Path) -> None:
    from datetime import UTC, datetime

    place = place_of(tmp_path, "s1", "s2", "s3")
    whole = plan_rebuild(place.bench, place.entity, RebuildStart())
    assert (whole.base, [known.name for known in whole.slices]) == (None, ["s1", "s2", "s3"])
    for start in (RebuildStart(slice="s2"), RebuildStart(time=datetime(2024, 5, 2, tzinfo=UTC))):
        part = plan_rebuild(place.bench, place.entity, start)
        assert (part.base, [known.name for known in part.slices]) == (0, ["s2", "s3"])
        assert part.digest != whole.digest
    with pytest.raises(UsageError, match="has no processed slice s7"):
        plan_rebuild(place.bench, place.entity, RebuildStart(slice="s7"))


def test_a_lost_manifest_is_recovered_without_the_undone_slice(tmp_path: Path) -> None:
    """Otherwise the next run would apply again what an operator took back."""
    place = place_of(tmp_path, "s1", "s2")
    told = {
        "id": "r1",
        "base": 0,
        "reason": "undo of s2 of orders by ann: sent twice",
        "slices": [{"item_id": place.item("s2").item_id, "revision": 1, "is_skipped": True}],
    }
    restored(place, **told)
    place.lose()
    assert names(place.look().ready) == []
    assert place.verdicts() == {"s1": Verdict.PROCESSED, "s2": Verdict.SKIPPED}
    assert "sent twice" in str(place.ledger.store.records(place.item("s2").item_id)[-1].content["reason"])
