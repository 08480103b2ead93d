"""Which slices a rebuild applies again, and what it leaves out. No Spark is started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.unit.slices.test_plan_undo import TIME, acquired, place_of, replayed, undo_of
from tests.unit.slices.test_recover_from_log import Place

from lakewright.errors import DataLossError, SliceError, UsageError
from lakewright.slices.chain import AppliedSlice, archived_for_undo, is_in_table
from lakewright.slices.discover import list_bronze, list_slices
from lakewright.slices.rewind import execution
from lakewright.slices.rewind.plan_rebuild import RebuildStart, plan_rebuild
from lakewright.usecases.rebuild_table import Rebuilt


def test_a_rebuild_leaves_out_slices_that_were_skipped_since_they_were_processed(tmp_path: Path) -> None:
    """It applied them again, and they counted as processed."""
    place = place_of(tmp_path, "s1", "s2", "s3")
    for name in ("s1", "s2"):
        place.ledger.skip(place.item(name).item_id, "broken")
    (place.bronze / "s2").unlink()
    whole = plan_rebuild(place.bench, place.entity, RebuildStart())
    assert ([known.name for known in whole.slices], whole.kept) == (["s3"], ())
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
    assert (rest.base, len(rest.kept), rest.skipped) == (1, 2, ())
    place.ledger.skip(place.item("s3").item_id, "broken")
    with pytest.raises(UsageError, match="every slice that the table of orders holds was skipped") as caught:
        plan_rebuild(place.bench, place.entity, RebuildStart())
    assert str(caught.value.remedy).startswith(
        "`lakewright manifest unskip orders/s3`, then `lakewright process orders`, then `lakewright undo "
    )


def folded(place: Place, *names: str) -> None:
    """Commit slices folded into one commit, and let the manifest record them."""
    slices = {each.name: each for each in list_slices(str(place.bronze), place.workspace.lake)}
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

    assert [known.name for known in plan.slices] == names


def test_after_a_restore_slices_keep_the_order_in_which_they_were_applied_last(tmp_path: Path) -> None:
    """A slice that had first been put in its place by a rebuild was applied after later ones."""
    place = Place(tmp_path, "s1", "s2", "s3", "s4")
    for number, name in ((1, "s1"), (2, "s3"), (3, "s4")):
        place.commit(number, name, strategy="merge", processingTime=TIME.format(name[1]))
    slices = {each.name: each for each in list_slices(str(place.bronze), place.workspace.lake)}
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
    assert [known.name for known in plan.slices] == ["s1", "s2", "s3", "s4"]
    with pytest.raises(DataLossError, match="s2 of orders is not in the table since it was restored"):
        plan_rebuild(place.bench, place.entity, RebuildStart(slice="s3"), is_over_foreign=True)


def test_a_slice_that_was_skipped_again_is_known_by_the_log(tmp_path: Path) -> None:
    """After a skip was taken back and made again, the slice counted as not in the table."""
    place = place_of(tmp_path, "s1", "s2")
    s2 = place.item("s2").item_id
    for action in (place.ledger.skip, place.ledger.unskip, place.ledger.skip):
        action(s2, "broken")
    assert is_in_table(place.chain, place.item("s2"))
    with pytest.raises(UsageError, match="s2 of orders was skipped, but the table still holds it"):
        undo_of(place, "s2")
    place.put("s3")
    place.look()
    place.ledger.skip(place.item("s3").item_id, "broken")
    assert not is_in_table(place.chain, place.item("s3"))
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
    assert [known.name for known in plan.slices] == ["s1", "s3"], "of s1, the table has a commit"
    assert (plan.requeued, plan.as_json()["requeued"]) == (("s2",), ["s2"])
    assert Rebuilt("orders", plan, None).requeued_words == (
        "s2 was requeued and left out, as the table has no commit of it: the next run processes it, or "
        "`lakewright rebuild orders --include s2` applies it in its place"
    )
    assert Rebuilt("orders", replace(plan, requeued=()), None).requeued_words is None


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
        place.bench, place.entity, plan, rewind, contents=(), reason="x", check=lambda: None
    )
    assert told["slices"] == []  # the manifest has it as skipped already
    assert gone == [frozenset({place.item("s1").item_id, item.item_id})]


def test_a_rebuild_that_lacks_slices_names_the_one_from_which_it_is_possible(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2", "s3", "s4")
    (place.bronze / "s1").unlink()
    with pytest.raises(SliceError, match="s1 is gone") as caught:
        plan_rebuild(place.bench, place.entity, RebuildStart())
    assert "or keep the rows before s2: `lakewright rebuild orders --from s2`" in (caught.value.remedy or "")
    assert plan_rebuild(place.bench, place.entity, RebuildStart(slice="s2")).base == 0
    (place.bronze / "s3").unlink()
    with pytest.raises(SliceError, match="s1 is gone; s3 is gone") as caught:
        plan_rebuild(place.bench, place.entity, RebuildStart())
    assert "`lakewright rebuild orders --from s4`" in (caught.value.remedy or "")
    (place.bronze / "s4").unlink()
    with pytest.raises(SliceError, match="s4 is gone") as caught:
        plan_rebuild(place.bench, place.entity, RebuildStart())
    assert caught.value.remedy == "Bring them back as they were. Nothing was written."


def waiting(place: Place, name: str) -> AppliedSlice:
    """Return a slice that waits as a rebuild includes it."""
    found = {each.name: each for each in list_slices(str(place.bronze), place.workspace.lake)}
    content = {"processingTime": TIME.format(name[1]), "strategy": "merge"}
    fingerprint = dict(found[name].fingerprint)
    return AppliedSlice(place.item(name).item_id, 0, {**content, "fingerprint": fingerprint})


def refused(place: Place, *included: str) -> str:
    """Return the remedy of a rebuild with slices that wait, for which others are gone."""
    slices = [waiting(place, name) for name in included]
    with pytest.raises(SliceError, match="s1 is gone") as caught:
        plan_rebuild(place.bench, place.entity, RebuildStart(), included=slices)
    return caught.value.remedy or ""


def test_a_late_slice_gets_its_place_by_an_undo_of_those_after_it_if_older_ones_are_archived(
    tmp_path: Path,
) -> None:
    """`rebuild --from` was named, which left the slice out, so that its advice led in a circle."""
    place = Place(tmp_path, "s1", "s3", "s4")
    for number, name in enumerate(("s1", "s3", "s4"), 1):
        place.commit(number, name, strategy="merge", processingTime=TIME.format(name[1]))
    place.look()
    place.put("s2")
    place.look()
    (place.bronze / "s1").unlink()
    assert refused(place, "s2") == (
        "Bring them back as they were, or keep the rows before s3: `lakewright undo orders s3 --requeue`, "
        "then a run. Nothing was written."
    )
    undone = undo_of(place, "s3", is_requeued=True)
    assert (undone.base, replayed(undone)) == (0, []), "it needs no slice before s3"


def test_a_rebuild_starts_with_a_requeued_slice_if_older_ones_are_archived(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2", "s3", "s4")
    (place.bronze / "s1").unlink()
    place.ledger.requeue(place.item("s3").item_id, "corrected", allow_late=True)
    assert "or keep the rows before s2: `lakewright rebuild orders --from s2`" in refused(place, "s3")
    started = plan_rebuild(place.bench, place.entity, RebuildStart(slice="s2"))
    assert [known.name for known in started.slices] == ["s2", "s3", "s4"]


def test_no_start_is_named_that_leaves_out_what_is_to_be_included(tmp_path: Path) -> None:
    """After a fold of both, `--from` a later slice changed no row, and the same was named once more."""
    place = Place(tmp_path, "s1", "s2", "s3")
    folded(place, "s1", "s2", "s3")
    place.put("s4")
    place.commit(5, "s4", strategy="merge", processingTime=TIME.format(4))
    assert place.look().ready == ()
    (place.bronze / "s1").unlink()
    place.ledger.requeue(place.item("s2").item_id, "corrected", allow_late=True)
    assert refused(place, "s2") == "Bring them back as they were. Nothing was written."


def test_archived_slices_that_an_undo_would_apply_again_are_named_before_it(tmp_path: Path) -> None:
    """`undo --requeue` was named although one commit holds the slice with archived ones, and refused."""
    place = Place(tmp_path, "s1", "s2", "s3")
    folded(place, "s1", "s2", "s3")
    place.put("s4")
    place.commit(5, "s4", strategy="merge", processingTime=TIME.format(4))
    place.look()

    def archived(name: str) -> tuple[str, ...] | None:
        listing = list_bronze(str(place.bronze), place.workspace.lake)
        return archived_for_undo(place.chain, name, listing)

    assert archived("s3") == ()
    for name in ("s1", "s3"):
        (place.bronze / name).unlink()
    assert (archived("s2"), archived("s4"), archived("s9")) == (("s1", "s3"), (), None)
    place.ledger.skip(place.item("s3").item_id, "wrong")
    assert archived("s2") == ("s1",)
    with pytest.raises(SliceError, match="s1 is gone"):
        undo_of(place, "s2", is_requeued=True)
