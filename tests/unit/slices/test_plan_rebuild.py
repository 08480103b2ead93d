"""Which slices a rebuild applies again, and what it leaves out. No Spark is started."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.unit.slices.test_plan_undo import TIME, acquired, place_of, undo_of
from tests.unit.slices.test_recover_from_log import Place

from lakewright.errors import SliceError, UsageError
from lakewright.slices.discovery import list_slices
from lakewright.slices.rewind import execution
from lakewright.slices.rewind.plan import Arriving, in_place, with_times
from lakewright.slices.rewind.undo_rebuild import RebuildStart, plan_rebuild
from lakewright.spec.models.entity import Strategy
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.usecases.rewinds import Rebuilt


def test_a_rebuild_leaves_out_slices_that_were_skipped_since_they_were_processed(tmp_path: Path) -> None:
    """It applied them again, and they counted as processed."""
    place = place_of(tmp_path, "s1", "s2", "s3")
    for name in ("s1", "s2"):
        place.ledger.skip(place.item(name).item_id, "broken")
    (place.bronze / "s2").unlink()
    whole = plan_rebuild(place.bench, place.entity, RebuildStart())
    assert (whole.replay.names, whole.replay.kept) == (["s3"], ())
    assert whole.as_json()["skipped"] == ["s1", "s2"]
    assert Rebuilt("orders", whole, None).skipped_words == (
        "s1, s2 were skipped: the new table has none of their changes"
    )
    with pytest.raises(UsageError, match="orders has no processed slice s2"):
        plan_rebuild(place.bench, place.entity, RebuildStart(slice="s2"))
    with pytest.raises(UsageError, match="s2 of orders was skipped, but the table still holds it") as caught:
        undo_of(place, "s2")
    assert caught.value.remedy == "`lakewright rebuild orders` builds the table again without it."
    # What the table held before the start stays.
    rest = plan_rebuild(place.bench, place.entity, RebuildStart(slice="s3"))
    assert (rest.replay.base, len(rest.replay.kept), rest.replay.skipped) == (1, 2, ())
    place.ledger.skip(place.item("s3").item_id, "broken")
    none = plan_rebuild(place.bench, place.entity, RebuildStart()).replay
    assert (none.base, none.slices, none.changes_table) == (None, (), True), "the table becomes empty"


def folded(place: Place, *names: str) -> None:
    """Commit slices folded into one commit, and let the manifest record them."""
    slices = {each.name: each for each in list_slices(SliceFolder(str(place.bronze)), place.workspace.lake)}
    items = [
        {
            "item": place.item(name).item_id,
            "number": 4,
            "revision": 1,
            "fingerprint": slices[name].fingerprint,
            "strategy": "merge",
            "processingTime": TIME.format(name[1]),
        }
        for name in names
    ]
    place.commit(4, names[0], items=items)
    assert place.look().ready == ()


def test_slices_that_were_folded_keep_their_order_if_some_are_requeued(tmp_path: Path) -> None:
    """Requeued ones came before the others, so that versions ended before they began."""
    names = ["s1", "s2", "s3", "s4"]
    place = Place(tmp_path, *names)
    folded(place, *names)
    for name in ("s3", "s4"):
        place.ledger.requeue(place.item(name).item_id, "corrected", allow_late=True)

    plan = plan_rebuild(place.bench, place.entity, RebuildStart())

    assert plan.replay.names == names


def test_after_a_restore_slices_keep_the_order_in_which_they_were_applied_last(tmp_path: Path) -> None:
    """A slice that had first been put in its place by a rebuild was applied after later ones."""
    place = Place(tmp_path, "s1", "s2", "s3", "s4")
    for number, name in ((1, "s1"), (2, "s3"), (3, "s4")):
        place.commit(number, name, strategy="merge", processingTime=TIME.format(name[1]))
    slices = {each.name: each for each in list_slices(SliceFolder(str(place.bronze)), place.workspace.lake)}
    items = [
        {
            "item": place.item(name).item_id,
            "number": 4,
            "revision": 1,
            "fingerprint": each.fingerprint,
            "strategy": "merge",
            "processingTime": TIME.format(name[1]),
        }
        for name, each in slices.items()
    ]
    place.commit(4, "s1", items=items, rewind={"base": None, "slices": []})
    assert place.look().ready == ()
    DeltaTable(place.silver).restore(1)
    plan = plan_rebuild(place.bench, place.entity, RebuildStart(), is_over_foreign=True)
    assert plan.replay.names == ["s1", "s2", "s3", "s4"]
    # The table has lost a slice before the start: it goes back to what it held before that one.
    part = plan_rebuild(place.bench, place.entity, RebuildStart(slice="s3"), is_over_foreign=True).replay
    assert (part.base, part.names) == (0, ["s2", "s3", "s4"])


def test_a_slice_that_was_skipped_again_is_known_by_the_log(tmp_path: Path) -> None:
    """After a skip was taken back and made again, the slice counted as not in the table."""
    place = place_of(tmp_path, "s1", "s2")
    s2 = place.item("s2").item_id
    for action in (place.ledger.skip, place.ledger.unskip, place.ledger.skip):
        action(s2, "broken")
    with pytest.raises(UsageError, match="s2 of orders was skipped, but the table still holds it"):
        undo_of(place, "s2")
    place.put("s3")
    place.look()
    place.ledger.skip(place.item("s3").item_id, "broken")
    with pytest.raises(UsageError, match="s3 of orders is not in the table: it is skipped"):
        undo_of(place, "s3")


def test_a_rebuild_tells_requeued_slices_that_it_leaves_out_with_what_includes_them(tmp_path: Path) -> None:
    """A slice whose processing had changed no row was left out in silence once it was requeued."""
    place = place_of(tmp_path, "s1", "s3")
    place.put("s2")
    place.look()
    place.ledger.processed(acquired(place, "s2"), {"processing_time": TIME.format(2), "delta_version": None})
    for name in ("s1", "s2"):
        place.ledger.requeue(place.item(name).item_id, "corrected")
    plan = plan_rebuild(place.bench, place.entity, RebuildStart())
    assert plan.replay.names == ["s1", "s3"], "of s1, the table has a commit"
    assert (plan.requeued, plan.as_json()["requeued"]) == (("s2",), ["s2"])
    assert Rebuilt("orders", plan, None).words == (
        "s2 was requeued and left out, as the table has no commit of it: the next run processes it, or "
        "`lakewright rebuild orders --include s2` applies it in its place",
    )
    assert Rebuilt("orders", replace(plan, requeued=()), None).words == ()


def test_a_rebuild_takes_back_the_watermark_of_a_slice_that_it_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_of(tmp_path, "s1", "s2")
    item = place.ledger.skip(place.item("s2").item_id, "broken")
    plan = plan_rebuild(place.bench, place.entity, RebuildStart())
    told: dict[str, Any] = {}
    gone: list[frozenset[str]] = []

    def watermarks_after(_context: Any, ids: frozenset[str], _left: Any) -> dict[str, Any]:
        gone.append(ids)
        return {}

    monkeypatch.setattr(execution, "watermarks_after", watermarks_after)
    monkeypatch.setattr(execution, "record_landed", lambda *_: None)

    def commit_rewind(*given: Any, **_: Any) -> Any:
        told.update(given[3].token.content["rewind"])
        return SimpleNamespace(version=9)

    monkeypatch.setattr(execution, "_commit_rewind", commit_rewind)
    for name in ("rewind_session", "swap_write"):
        monkeypatch.setattr(execution, name, lambda *_: None)
    rewind: Any = SimpleNamespace(rewind_id="r")
    execution.rewind_table(
        place.bench,
        place.entity,
        plan.replay,
        rewind,
        operation="rebuild",
        contents=(),
        reason="x",
        check=lambda: None,
    )
    assert told["slices"] == []  # the manifest has it as skipped already
    assert gone == [frozenset({place.item("s1").item_id, item.item_id})]


def test_a_rebuild_starts_with_a_requeued_slice_if_older_ones_are_archived(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2", "s3", "s4")
    (place.bronze / "s1").unlink()
    place.ledger.requeue(place.item("s3").item_id, "corrected", allow_late=True)
    with pytest.raises(SliceError) as caught:
        plan_rebuild(place.bench, place.entity, RebuildStart())
    assert caught.value.details["slices"] == {"s1": "gone"}
    started = plan_rebuild(place.bench, place.entity, RebuildStart(slice="s2"))
    assert started.replay.names == ["s2", "s3", "s4"]


def test_a_rebuild_that_starts_amid_a_commit_applies_the_slices_before_it_again(tmp_path: Path) -> None:
    place = Place(tmp_path, "s1", "s2", "s3")
    folded(place, "s1", "s2", "s3")
    part = plan_rebuild(place.bench, place.entity, RebuildStart(slice="s2")).replay
    assert (part.base, part.names) == (None, ["s1", "s2", "s3"])


def test_a_slice_that_waits_has_its_place_by_its_name_and_a_time_between_those_around_it(
    tmp_path: Path,
) -> None:
    place = place_of(tmp_path, "s1", "s3", "s4")  # at days 1, 2 and 3
    place.put("s2")
    place.look()
    item, found = place.item("s2").item_id, {}
    for days in ((), (9,), (9, 1)):
        waiting = Arriving(item, {"size": 2}, tuple(datetime(2024, 5, day, 6, tzinfo=UTC) for day in days))
        wanted = with_times(place.bench, in_place(place.chain.order, [waiting]), Strategy.HISTORIC)
        assert [each.name for each in wanted] == ["s1", "s2", "s3", "s4"]
        found[days] = wanted[1].content["processingTime"]
    beside = "2024-05-01T00:00:01+00:00"
    assert found == {(): beside, (9,): beside, (9, 1): "2024-05-01T06:00:00+00:00"}
    # Where there is no room, those after it move by a microsecond.
    near = [
        replace(each, content={**each.content, "processingTime": f"2024-05-01T00:00:00.00000{number}+00:00"})
        for number, each in enumerate(place.chain.order)
    ]
    pushed = with_times(place.bench, in_place(near, [Arriving(item)]), Strategy.HISTORIC)
    assert [each.at.microsecond for each in pushed if each.at] == [0, 1, 2, 3]
    assert len(place.warnings) == 2, (
        "the second one: that the only time which is given is not between those around it"
    )
