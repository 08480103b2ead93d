"""What an undo plans and refuses, and what is recovered of it. No Spark is started."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from tests.unit.slices.test_recover_from_log import Place, names, pa

from lakewright.errors import DataLossError, ItemFailed, SliceError, UsageError
from lakewright.manifest.claim import Claim
from lakewright.manifest.item import Verdict
from lakewright.manifest.payload import failure
from lakewright.slices.chain import counter_of
from lakewright.slices.discover import list_slices
from lakewright.slices.rewind import execution
from lakewright.slices.rewind.difference import TableDifference
from lakewright.slices.rewind.plan import RewindPlan
from lakewright.slices.rewind.plan_rebuild import RebuildStart, plan_rebuild
from lakewright.slices.rewind.plan_undo import UndoPlan, check_recorded, plan_undo

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
    return [each.name for each in plan.replayed]


def test_the_table_goes_back_to_the_version_before_the_slice(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2", "s3")
    found = [(undo_of(place, name).base, replayed(undo_of(place, name))) for name in ("s1", "s2", "s3")]
    assert found == [(None, ["s2", "s3"]), (0, ["s3"]), (1, [])]
    assert undo_of(place, "s2").version == 1
    again = undo_of(place, "s2", is_requeued=True)
    assert (again.base, replayed(again), [each.name for each in again.later]) == (0, [], ["s3"])


def test_later_slices_that_were_skipped_since_they_were_processed_are_left_out(tmp_path: Path) -> None:
    """They were applied again and counted as processed; with `--requeue` the next run took them."""
    place = place_of(tmp_path, "s1", "s2", "s3", "s4")
    place.ledger.skip(place.item("s3").item_id, "broken")
    (place.bronze / "s3").unlink()
    plan = undo_of(place, "s2")
    assert (plan.base, replayed(plan), plan.as_json()["skipped"]) == (0, ["s4"], ["s3"])
    assert plan.rewound_ids == {place.item(name).item_id for name in ("s2", "s3", "s4")}
    requeued = undo_of(place, "s2", is_requeued=True)
    assert (replayed(requeued), [each.name for each in requeued.requeued]) == ([], ["s2", "s4"])
    # What the table held before the slice stays.
    last = undo_of(place, "s4")
    assert (last.base, last.skipped, last.version) == (2, (), 3)


def test_commits_of_others_are_named_and_lost_only_if_allowed(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2")
    by_hand(place)
    with pytest.raises(DataLossError, match=r"1 commit to orders that no slice made .* version 2 \(WRITE\)"):
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
    with pytest.raises(SliceError, match="s3 is gone") as rebuilt:
        plan_rebuild(place.bench, place.entity, RebuildStart())
    name = place.entity.name
    steps = f"in its place: `lakewright manifest requeue {name}/s4 --late`, then `lakewright rebuild {name}`"
    assert steps in (rebuilt.value.remedy or "")
    assert steps not in (raised.value.remedy or "")
    assert replayed(undo_of(place, "s4")) == []
    assert f"`lakewright manifest requeue {place.entity.name}/s4 --cascade`" in (raised.value.remedy or "")


def test_later_slices_that_have_changed_are_requeued_as_they_are_now(tmp_path: Path) -> None:
    """The undo that `status` names for corrected slices was refused, and its remedy led in a circle."""
    place = place_of(tmp_path, "s1", "s2", "s3", "s4")
    for name in ("s2", "s3", "s4"):
        (place.bronze / name).write_text("corrected, and longer")
    with pytest.raises(SliceError, match="s3 has changed since it was processed; s4 has changed") as raised:
        undo_of(place, "s2")
    assert raised.value.remedy == (
        "Bring them back as they were, or process what is there now: `lakewright undo orders s2 --requeue`, "
        "then `lakewright manifest skip orders/s2`, then a run. Nothing was written."
    )
    place.warnings.clear()
    plan = undo_of(place, "s2", is_requeued=True)
    assert (plan.base, replayed(plan), [each.name for each in plan.later]) == (0, [], ["s3", "s4"])
    assert place.warnings == [
        "orders: s3, s4 have changed since the last processing: the next run processes what is there now"
    ]
    (place.bronze / "s4").unlink()
    with pytest.raises(SliceError, match=r"from .*: s4 is gone"):
        undo_of(place, "s2", is_requeued=True)


def touch(place: Place, name: str) -> None:
    """Give a slice another time, as a copy of the lake does."""
    os.utime(place.bronze / name, (1, 1))


def accept(place: Place, name: str) -> dict[str, Any]:
    """Accept the present content of a slice; return its fingerprint."""
    (found,) = (s for s in list_slices(str(place.bronze), place.workspace.lake) if s.name == name)
    place.ledger.accept(place.item(name).item_id, "copied", fingerprint=found.fingerprint)
    return found.fingerprint


def again(place: Place, *names: str, cascade: Sequence[str] = ()) -> None:
    """Requeue a slice as it is now, and those after it; they are processed by the next numbers."""
    ids = {name: place.item(name).item_id for name in (*names, *cascade)}
    now = {s.name: s.fingerprint for s in list_slices(str(place.bronze), place.workspace.lake)}
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
    (later,) = undo_of(place, "s2").replayed
    assert later.content["fingerprint"] == now
    whole = plan_rebuild(place.bench, place.entity, RebuildStart())
    assert whole.slices[-1].fingerprint == now
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


def test_what_a_requeued_slice_is_to_be_processed_with_counts_only_once_it_is(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2", "s3")
    touch(place, "s3")
    (found,) = (s for s in list_slices(str(place.bronze), place.workspace.lake) if s.name == "s3")
    place.ledger.requeue(place.item("s3").item_id, "again", fingerprint=found.fingerprint)
    with pytest.raises(SliceError, match="s3 has changed since it was processed"):
        undo_of(place, "s2")

    place.warnings.clear()
    assert plan_rebuild(place.bench, place.entity, RebuildStart()).slices[-1].fingerprint == found.fingerprint
    (said,) = place.warnings
    assert said.startswith(
        "orders: s3 changed since the last processing, and was requeued: what is there now"
    )


def test_a_slice_that_was_delivered_again_is_applied_as_it_was_processed_last(tmp_path: Path) -> None:
    """An undo of an older slice asked for the content of the first delivery, which nobody has any more."""
    place = place_of(tmp_path, "s1", "s2", "s3")
    (place.bronze / "s2").write_text("delivered again")
    again(place, "s2", cascade=["s3"])
    plan = undo_of(place, "s1")
    assert (plan.base, replayed(plan), plan.repeated) == (None, ["s2", "s3"], ("s2", "s3"))
    assert [each.number for each in plan.since] == [1, 4, 5]
    assert plan.as_json()["repeated"] == ["s2", "s3"]
    # The next run takes each slice once, as it is now: nothing is to be shown of the table.
    requeued = undo_of(place, "s1", is_requeued=True)
    assert ([each.name for each in requeued.later], requeued.is_checked) == (["s2", "s3"], False)
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
    (found,) = (s for s in list_slices(str(place.bronze), place.workspace.lake) if s.name == "s3")
    place.ledger.requeue(place.item("s3").item_id, "again", fingerprint=found.fingerprint)
    told = {"strategy": "merge", "processing_time": TIME.format(5), "delta_version": None}
    place.ledger.processed(acquired(place, "s3"), {**told, "fingerprint": found.fingerprint})
    assert undo_of(place, "s1").repeated == (() if day == 3 else ("s3",))
    whole = plan_rebuild(place.bench, place.entity, RebuildStart())
    assert [(known.name, known.at.day) for known in whole.slices] == [("s1", 1), ("s2", 2), ("s3", day)]


@pytest.mark.parametrize("gone", [0, 2])
def test_an_undo_ends_if_slices_that_are_applied_once_do_not_give_the_table_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: int
) -> None:
    """Rows of the first delivery would go with the undone slice, and nobody would be told."""
    place = place_of(tmp_path, "s1", "s2")
    again(place, "s2")
    built: list[list[str]] = []

    def build_beside(_context: Any, _entity: Any, plan: RewindPlan, **_: Any) -> None:
        built.append([known.name for known in plan.slices])

    monkeypatch.setattr(execution, "build_beside", build_beside)
    monkeypatch.setattr(execution, "compare_beside", lambda *_, **__: TableDifference(5, gone, 0, seen=1))
    removed: list[Any] = []
    monkeypatch.setattr(execution, "remove_beside", lambda *_: removed.append(None))

    def check(name: str, **options: Any) -> None:
        plan = undo_of(place, name, **options)
        execution.check_each_once(place.bench, place.entity, plan, check=lambda: None)

    check("s2")
    check("s1", is_requeued=True)
    assert built == []
    if gone:
        with pytest.raises(DataLossError, match="s2 of orders was processed more than once") as caught:
            check("s1")
        assert "2 rows gone, 0 new, 6 equal" in caught.value.message
        assert (caught.value.remedy or "").startswith("`lakewright rebuild orders --check` shows these rows.")
    else:
        check("s1")
    assert (built, len(removed)) == ([["s1", "s2"]], 1)


def test_commits_of_others_that_may_be_lost_are_told_where_slices_do_not_give_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remedy was a rebuild that refuses them."""
    place = place_of(tmp_path, "s1", "s2")
    again(place, "s2")
    by_hand(place)
    for name in ("build_beside", "remove_beside"):
        monkeypatch.setattr(execution, name, lambda *_, **__: None)
    monkeypatch.setattr(execution, "compare_beside", lambda *_, **__: TableDifference(5, 1, 0))
    plan = undo_of(place, "s1", is_over_foreign=True)
    with pytest.raises(
        DataLossError, match="applied once, without the commits of other writers, does"
    ) as caught:
        execution.check_each_once(place.bench, place.entity, plan, check=lambda: None)
    assert (caught.value.remedy or "").startswith("`lakewright rebuild orders --over-foreign --check` shows")


def test_the_undone_slice_must_be_there_to_show_what_others_give_once(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2", "s3")
    again(place, "s2", cascade=["s3"])
    (place.bronze / "s1").unlink()
    with pytest.raises(SliceError, match="s1 is gone") as caught:
        undo_of(place, "s1")
    assert caught.value.remedy == (
        "Bring them back as they were, or do without it: `lakewright undo orders s1 --requeue`, then "
        "`lakewright manifest skip orders/s1`, then a run. Nothing was written."
    )
    assert undo_of(place, "s1", is_requeued=True).base is None
    (place.bronze / "s3").unlink()
    with pytest.raises(SliceError, match="s1 is gone; s3 is gone") as caught:
        undo_of(place, "s1")
    assert "--requeue" not in (caught.value.remedy or "")


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
    assert (whole.base, [known.name for known in whole.slices]) == (None, ["s1", "s2", "s3"])
    for start in (RebuildStart(slice="s2"), RebuildStart(time=datetime(2024, 5, 2, tzinfo=UTC))):
        part = plan_rebuild(place.bench, place.entity, start)
        assert (part.base, [known.name for known in part.slices]) == (0, ["s2", "s3"])
        assert part.app != whole.app
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
