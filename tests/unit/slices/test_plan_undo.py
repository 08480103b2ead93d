"""What an undo plans and refuses, and what is recovered of it. No Spark is started."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from tests.unit.slices.test_recover_from_log import Place, names, pa

from lakewright.errors import DataLossError, ItemFailed, SliceError, UsageError
from lakewright.manifest.claim import Claim
from lakewright.manifest.payload import failure
from lakewright.manifest.verdict import Verdict
from lakewright.slices.chain import counter_of
from lakewright.slices.discovery import list_slices
from lakewright.slices.rewind.undo_rebuild import (
    RebuildStart,
    UndoPlan,
    check_recorded,
    plan_rebuild,
    plan_undo,
)
from lakewright.spec.models.slice_folder import SliceFolder

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
    return plan.replay.names


def later(plan: UndoPlan) -> list[str]:
    """Return the slices after the undone one that the next run processes again."""
    return plan.requeued[1:]


def test_the_table_goes_back_to_the_version_before_the_slice(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2", "s3")
    found = [
        (undo_of(place, name).replay.base, replayed(undo_of(place, name))) for name in ("s1", "s2", "s3")
    ]
    assert found == [(None, ["s2", "s3"]), (0, ["s3"]), (1, [])]
    assert undo_of(place, "s2").version == 1
    again = undo_of(place, "s2", is_requeued=True)
    assert (again.replay.base, replayed(again), later(again)) == (0, [], ["s3"])


def test_later_slices_that_were_skipped_since_they_were_processed_are_left_out(tmp_path: Path) -> None:
    """They were applied again and counted as processed; with `--requeue` the next run took them."""
    place = place_of(tmp_path, "s1", "s2", "s3", "s4")
    place.ledger.skip(place.item("s3").item_id, "broken")
    (place.bronze / "s3").unlink()
    plan = undo_of(place, "s2")
    assert (plan.replay.base, replayed(plan), plan.as_json()["skipped"]) == (0, ["s4"], ["s3"])
    assert plan.replay.rewound_ids == {place.item(name).item_id for name in ("s2", "s3", "s4")}
    requeued = undo_of(place, "s2", is_requeued=True)
    assert (replayed(requeued), requeued.requeued) == ([], ["s2", "s4"])
    # What the table held before the slice stays.
    last = undo_of(place, "s4")
    assert (last.replay.base, last.replay.skipped, last.version) == (2, (), 3)


def test_commits_of_others_are_named_and_lost_only_if_allowed(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2")
    by_hand(place)
    with pytest.raises(DataLossError, match=r"1 commit to orders that no slice made .* version 2 \(WRITE\)"):
        undo_of(place, "s2")
    assert [commit.version for commit in undo_of(place, "s2", is_over_foreign=True).replay.foreign] == [2]
    with pytest.raises(DataLossError, match="no slice made"):
        plan_rebuild(place.bench, place.entity, RebuildStart())


def test_slices_that_must_be_applied_again_are_named_if_bronze_lacks_them(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2", "s3", "s4")
    (place.bronze / "s3").unlink()
    (place.bronze / "s4").write_text("something else, and longer")
    for plan in (partial(plan_undo, name="s2"), partial(plan_rebuild, start=RebuildStart())):
        with pytest.raises(SliceError) as raised:
            plan(place.bench, place.entity)
        assert raised.value.details["slices"] == {"s3": "gone", "s4": "changed"}
    assert replayed(undo_of(place, "s4")) == []


def test_later_slices_that_have_changed_are_requeued_as_they_are_now(tmp_path: Path) -> None:
    """The undo that `status` names for corrected slices was refused, and its remedy led in a circle."""
    place = place_of(tmp_path, "s1", "s2", "s3", "s4")
    for name in ("s2", "s3", "s4"):
        (place.bronze / name).write_text("corrected, and longer")
    with pytest.raises(SliceError) as raised:
        undo_of(place, "s2")
    assert raised.value.details["slices"] == {"s3": "changed", "s4": "changed"}
    plan = undo_of(place, "s2", is_requeued=True)
    assert (plan.replay.base, replayed(plan), later(plan)) == (0, [], ["s3", "s4"])
    (place.bronze / "s4").unlink()
    with pytest.raises(SliceError) as raised:
        undo_of(place, "s2", is_requeued=True)
    assert raised.value.details["slices"] == {"s4": "gone"}


def touch(place: Place, name: str) -> None:
    """Give a slice another time, as a copy of the lake does."""
    os.utime(place.bronze / name, (1, 1))


def accept(place: Place, name: str) -> dict[str, Any]:
    """Accept the present content of a slice; return its fingerprint."""
    (found,) = (
        s for s in list_slices(SliceFolder(str(place.bronze)), place.workspace.lake) if s.name == name
    )
    place.ledger.accept(place.item(name).item_id, "copied", fingerprint=found.fingerprint)
    return found.fingerprint


def again(place: Place, *names: str, cascade: Sequence[str] = ()) -> None:
    """Requeue a slice as it is now, and those after it; they are processed by the next numbers."""
    ids = {name: place.item(name).item_id for name in (*names, *cascade)}
    now = {s.name: s.fingerprint for s in list_slices(SliceFolder(str(place.bronze)), place.workspace.lake)}
    for name in (*names, *cascade):
        place.ledger.requeue(ids[name], "delivered again", fingerprint=now[name])
    number = DeltaTable(place.silver).version() + 2
    for each, name in enumerate((*names, *cascade), number):
        place.commit(each, name, revision=2, strategy="merge", processingTime=TIME.format(each))
        assert place.look().late == frozenset()
    assert place.look().ready == ()


def test_a_slice_that_was_accepted_with_other_times_is_applied_as_it_is_now(tmp_path: Path) -> None:
    """After a copy of the lake without the times of its files, `accept` was not enough for a rewind."""
    place = place_of(tmp_path, "s1", "s2", "s3")
    touch(place, "s3")
    with pytest.raises(SliceError, match="s3 has changed since it was processed") as caught:
        undo_of(place, "s2")
    typed = f"If the rows of {place.entity.name}/s3 are the same, type `lakewright manifest accept"
    assert str(caught.value.remedy).startswith(typed)
    now = accept(place, "s3")
    place.warnings.clear()
    (applied,) = undo_of(place, "s2").replay.slices
    assert applied.fingerprint == now
    whole = plan_rebuild(place.bench, place.entity, RebuildStart())
    assert whole.replay.slices[-1].fingerprint == now
    said = "orders: s3 has other files than when processed, and these were accepted"
    assert [warning.startswith(said) for warning in place.warnings] == [True, True]


def test_accepted_content_of_another_size_is_not_what_was_processed(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2", "s3")
    (place.bronze / "s3").write_text("something else, and longer")
    accept(place, "s3")
    with pytest.raises(SliceError, match="s3 has changed since it was processed"):
        undo_of(place, "s2")
    with pytest.raises(SliceError, match="s3 has changed since it was processed"):
        plan_rebuild(place.bench, place.entity, RebuildStart())


def test_a_requeued_slice_that_has_changed_is_applied_as_it_is_now(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2", "s3")
    touch(place, "s3")
    (found,) = (
        s for s in list_slices(SliceFolder(str(place.bronze)), place.workspace.lake) if s.name == "s3"
    )
    place.ledger.requeue(place.item("s3").item_id, "again", fingerprint=found.fingerprint)
    for plan in (undo_of(place, "s2"), plan_rebuild(place.bench, place.entity, RebuildStart())):
        assert plan.replay.slices[-1].fingerprint == found.fingerprint
        assert plan.replay.slices[-1].is_new
    assert [each for each in place.warnings if "and was requeued" in each] == place.warnings[1:]


def test_a_slice_that_was_delivered_again_is_applied_as_it_was_processed_last(tmp_path: Path) -> None:
    """An undo of an older slice asked for the content of the first delivery, which nobody has any more."""
    place = place_of(tmp_path, "s1", "s2", "s3")
    (place.bronze / "s2").write_text("delivered again")
    again(place, "s2", cascade=["s3"])
    plan = undo_of(place, "s1")
    assert (plan.replay.base, replayed(plan), plan.repeated) == (None, ["s2", "s3"], ("s2", "s3"))
    assert [known.at.day for known in plan.replay.slices] == [4, 5]
    assert plan.as_json()["repeated"] == ["s2", "s3"]
    # The next run takes each slice once, as it is now.
    requeued = undo_of(place, "s1", is_requeued=True)
    assert (later(requeued), requeued.repeated) == (["s2", "s3"], ())
    # Of the slice itself, nothing stays.
    assert (undo_of(place, "s3").repeated, undo_of(place, "s2").repeated) == ((), ("s3",))


@pytest.mark.parametrize(("content", "day"), [("s3", 3), ("delivered again", 5)])
def test_a_delivery_that_changed_nothing_is_applied_in_place_of_the_one_before(
    tmp_path: Path, content: str, day: int
) -> None:
    """The log shows the one before, which bronze has no more. The same one stays where it changed rows."""
    place = place_of(tmp_path, "s1", "s2", "s3")
    if content != "s3":
        (place.bronze / "s3").write_text(content)
    (found,) = (
        s for s in list_slices(SliceFolder(str(place.bronze)), place.workspace.lake) if s.name == "s3"
    )
    place.ledger.requeue(place.item("s3").item_id, "again", fingerprint=found.fingerprint)
    told = {"strategy": "merge", "processing_time": TIME.format(5), "delta_version": None}
    place.ledger.processed(acquired(place, "s3"), {**told, "fingerprint": found.fingerprint})
    whole = plan_rebuild(place.bench, place.entity, RebuildStart())
    assert [(known.name, known.at.day) for known in whole.replay.slices] == [
        ("s1", 1),
        ("s2", 2),
        ("s3", day),
    ]


def acquired(place: Place, name: str) -> Claim:
    """Lock a ready slice; its commit gets the next number of the table."""
    silver = place.entity.places(place.workspace.lake.settings).silver
    (ready,) = (item for item in place.look().ready if item.item_id == place.item(name).item_id)
    return place.ledger.acquire(
        ready.item_id,
        place.application,
        place.bench.holder,
        duration=timedelta(seconds=60),
        token_counter=counter_of(silver),
    )


def fail(place: Place, name: str) -> None:
    """Let the entity fail with a ready slice."""
    place.ledger.failed(
        acquired(place, name), failure(SliceError(f"{name} is empty", remedy="Deliver it again."))
    )


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
    with pytest.raises(UsageError, match="it is unknown") as caught:
        undo_of(place, "s11")
    assert "Did you mean 's1'? Only a processed slice" in str(caught.value.remedy)
    place.ledger.requeue(place.item("s1").item_id, "corrected")
    with pytest.raises(UsageError, match="s1 of orders was requeued, and the table holds its rows") as caught:
        undo_of(place, "s1")
    assert "`lakewright manifest skip orders/s1`, then `lakewright rebuild orders`" in str(
        caught.value.remedy
    )


def test_a_rebuild_starts_with_a_slice_or_a_time(tmp_path: Path) -> None:
    from datetime import UTC, datetime

    place = place_of(tmp_path, "s1", "s2", "s3")
    whole = plan_rebuild(place.bench, place.entity, RebuildStart())
    assert (whole.replay.base, whole.replay.names) == (None, ["s1", "s2", "s3"])
    for start in (RebuildStart(slice="s2"), RebuildStart(time=datetime(2024, 5, 2, tzinfo=UTC))):
        part = plan_rebuild(place.bench, place.entity, start)
        assert (part.replay.base, part.replay.names) == (0, ["s2", "s3"])
        assert part.replay.app != whole.replay.app
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


def test_a_name_that_no_slice_has_is_refused_before_a_run_is_recorded(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1")
    check_recorded(place.bench, place.entity, "s1")
    with pytest.raises(UsageError, match=r"the slice nope of .* is not in the table"):
        check_recorded(place.bench, place.entity, "nope")
