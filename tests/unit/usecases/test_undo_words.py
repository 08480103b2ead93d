"""What an undo says of the table, and of the rows that it does not compare. No Spark is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from tests.unit.slices.test_plan_undo import TIME, again, place_of, undo_of
from tests.unit.slices.test_recover_from_log import Place

from lakewright.cli.commands.rewind import undo_page
from lakewright.slices.discovery import item_id, list_slices
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.strategies.table_properties import HISTORY_PROPERTY
from lakewright.usecases.rewinds import Undone


def folded(place: Place, *names: str, **told: Any) -> None:
    """Put down a commit that holds several slices."""
    slices = {each.name: each for each in list_slices(SliceFolder(str(place.bronze)), place.workspace.lake)}
    items = [
        {
            "item": item_id(slices[name].path),
            "number": 9,
            "processingTime": TIME.format(number),
            "fingerprint": slices[name].fingerprint,
        }
        for number, name in enumerate(names, 1)
    ]
    place.commit(9, names[-1], strategy="merge", items=items, **told)


def said(undone: Undone) -> list[str]:
    _, *lines = map(str, undo_page(undone))
    return [each for each in lines if not each.startswith("Done.")]


def test_an_undo_after_a_whole_rebuild_says_which_slices_are_applied_again(tmp_path: Path) -> None:
    """It said that the table becomes empty, and `status` that it went back to version None."""
    place = place_of(tmp_path, "s1", "s2", "s3")
    told: dict[str, Any] = {
        "id": "r1",
        "operation": "rebuild",
        "base": None,
        "reason": "x",
        "slices": [],
        "watermarks": {},
    }
    folded(place, "s1", "s2", "s3", rewind=told)
    plan = undo_of(place, "s2")
    assert (plan.replay.base, plan.version) == (None, None)
    assert said(Undone("orders", plan)) == [
        "the table is built again from 2 slices: s1, s3",
        "s2 is skipped",
        "no rows are compared: no version shows what it changed by itself",
    ]
    assert "<p>no rows are compared: " in Undone("orders", plan)._repr_html_()
    assert said(Undone("orders", plan, version=10))[2:] == [
        "once its file is corrected, `lakewright status` and the plan of its job name what processes it in "
        "its place"
    ]

    requeued = undo_of(place, "s2", is_requeued=True)
    assert (requeued.replay.names, requeued.requeued) == (["s1"], ["s2", "s3"])
    assert said(Undone("orders", requeued))[:2] == [
        "the table is built again from 1 slice: s1",
        "s2, s3 are ready for the next run",
    ]
    first = undo_of(place, "s1", is_requeued=True)
    assert said(Undone("orders", first)) == [
        "there is no version before it: the table becomes empty",
        "s1, s2, s3 are ready for the next run",
    ]


def test_an_undo_of_the_first_slice_says_what_becomes_of_those_after_it(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2")
    plan = undo_of(place, "s1")
    assert said(Undone("orders", plan)) == ["the table is built again from 1 slice: s2", "s1 is skipped"]
    requeued = Undone("orders", undo_of(place, "s1", is_requeued=True))
    assert requeued.words[0] == "there is no version before it: the table becomes empty"
    last = undo_of(place, "s2")
    assert Undone("orders", last).words[0] == "the table goes from version 1 back to version 0"


def test_an_undo_names_the_skipped_slices_that_leave_the_table_with_it(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2", "s3")
    place.ledger.skip(place.item("s2").item_id, "broken")
    words = Undone("orders", undo_of(place, "s1"))
    assert said(words) == [
        "the table is built again from 1 slice: s3",
        "s1 is skipped",
        "s2 was skipped: the table then has none of its changes",
        "no rows are compared: no version shows what it changed by itself",
    ]
    assert "<p>s2 was skipped: the table then has none of its changes</p>" in words._repr_html_()


def test_an_undo_of_one_of_several_slices_of_a_commit_says_why_no_rows_are_compared(tmp_path: Path) -> None:
    place = Place(tmp_path, "s1", "s2", "s3")
    place.commit(1, "s1", strategy="merge", processingTime=TIME.format(1))
    folded(place, "s2", "s3")
    place.look()
    plan = undo_of(place, "s2")
    words = Undone("orders", plan)
    assert words.words[0] == "the table goes from version 1 back to version 0, then s3 again"
    assert words.words[-1].startswith("no rows are compared")
    requeued = undo_of(place, "s3", is_requeued=True)
    assert Undone("orders", requeued).words[0] == (
        "the table goes from version 1 back to version 0, then s2 again"
    )
    assert requeued.as_json()["requeued"] == ["s3"]


def test_an_undo_of_a_slice_that_was_processed_twice_shows_no_rows_of_the_first_time_alone(
    tmp_path: Path,
) -> None:
    place = place_of(tmp_path, "s1", "s2", "s3")
    again(place, "s1", cascade=["s2", "s3"])
    plan = undo_of(place, "s1")
    assert (plan.replay.base, plan.version, plan.replay.names) == (None, None, ["s2", "s3"])
    assert Undone("orders", plan).words[-1].startswith("no rows are compared")


def test_an_undo_after_the_rebuild_of_one_slice_counts_no_versions_of_history_from(tmp_path: Path) -> None:
    """They are in its commit, but the undo keeps them."""
    place = Place(tmp_path, "s1", "s2")
    rewind: dict[str, Any] = {"id": "r", "operation": "rebuild", "base": None, "slices": [], "watermarks": {}}
    place.commit(1, "s1", strategy="historic", processingTime=TIME.format(1), rewind=rewind)
    place.commit(2, "s2", strategy="historic", processingTime=TIME.format(2))
    place.look()
    assert undo_of(place, "s1").version == 0
    DeltaTable(place.silver).alter.set_table_properties({HISTORY_PROPERTY: "{}"}, raise_if_not_exists=False)
    plan = undo_of(place, "s1")
    assert (plan.replay.has_past, plan.version) == (True, None)
    assert Undone("orders", plan).words[-1].startswith("no rows are compared")
