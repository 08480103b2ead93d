"""A lake that was moved: the commits of its tables name the items that its slices had before."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from tests.unit.slices.test_plan_undo import TIME, replayed, undo_of
from tests.unit.slices.test_recover_from_log import Place, names

from lakewright.errors import LakeMoved, UsageError
from lakewright.manifest.ledger import DiscoveredSlice
from lakewright.manifest.verdict import Verdict
from lakewright.slices.chain import new_item
from lakewright.slices.discovery import discovered, list_slices
from lakewright.slices.log_recovery import find_recovery
from lakewright.slices.rewind.undo_rebuild import RebuildStart, plan_rebuild
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.upkeep.relocation import relocate

OLD = "file:///old/orders"


def moved(folder: Path) -> Place:
    """Return a place whose slices were committed when they were in another folder; the manifest is lost."""
    place = Place(folder, "s1", "s2", "s3")
    for number, name in enumerate(("s1", "s2", "s3"), 1):
        told = {"strategy": "merge", "processingTime": TIME.format(number)}
        place.commit(number, name, item=f"{OLD}/{name}", **told)
    return place


def with_both(folder: Path) -> Place:
    """Return such a place with a manifest that has the items of both folders, as after `manifest move`."""
    place, ids = moved(folder), count()
    assert place.look().ready == ()
    new = place.item("s1").item_id.rpartition("/")[0]
    assert len(list(relocate(place.ledger.store, new, OLD, lambda: f"record-{next(ids)}"))) == 3
    return place


def test_a_lost_manifest_gets_back_what_the_table_has(tmp_path: Path) -> None:
    """All slices were applied again."""
    place = moved(tmp_path)
    assert names(place.look().ready) == []
    assert place.verdicts() == dict.fromkeys(("s1", "s2", "s3"), Verdict.PROCESSED)
    assert place.item("s3").tokens == {place.application.key: 3}


def test_a_rebuild_applies_each_slice_once(tmp_path: Path) -> None:
    """It applied each twice, under its former and its present item."""
    place = with_both(tmp_path)
    whole = plan_rebuild(place.bench, place.entity, RebuildStart())
    assert whole.replay.names == ["s1", "s2", "s3"]
    assert plan_rebuild(place.bench, place.entity, RebuildStart(slice="s3")).replay.base == 1
    place.ledger.skip(place.item("s2").item_id, "sent by mistake")
    without = plan_rebuild(place.bench, place.entity, RebuildStart())
    assert (without.replay.names, without.replay.skipped_names) == (["s1", "s3"], ["s2"])
    with pytest.raises(UsageError, match="s2 of orders was skipped, but the table still holds it"):
        undo_of(place, "s2")


def test_an_undo_finds_the_commit_of_a_slice(tmp_path: Path) -> None:
    """It said that the log does not show the commit any more."""
    plan = undo_of(with_both(tmp_path), "s2")
    assert (plan.replay.base, replayed(plan)) == (0, ["s3"])


def test_a_manifest_that_moved_along_is_not_lost(tmp_path: Path) -> None:
    """`status` said that the next run records the slices; the run named `manifest move`."""
    place = moved(tmp_path)
    names_there = ("s1", "s2", "s3")
    told = [DiscoveredSlice(f"{OLD}/{name}", place.application, "orders", name, {}) for name in names_there]
    for number, item in enumerate(place.ledger.discover(told).new, 1):
        place.ledger.recover_processed(item, place.application, token=number, content={}, run_id=None)
    here = list_slices(SliceFolder(str(place.bronze)), place.workspace.lake)
    items = [new_item(each) for each in discovered(here, place.application, "orders")]
    assert find_recovery(place.chain, items) is None
    with pytest.raises(LakeMoved):
        place.look()
