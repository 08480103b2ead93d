"""Rewinds that a table's log has and the manifest lacks, as it was put back to an older copy."""

from __future__ import annotations

import copy
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from tests.unit.slices.test_recover_from_log import Place, names

from lakewright.lake.delta_log import read_history
from lakewright.manifest.rewind import RewoundSlice, rewound_slices
from lakewright.manifest.verdict import Verdict
from lakewright.slices.discovery import slice_of_id
from lakewright.slices.log_recovery import record_log, unrecorded_rewinds

pa: Any = import_module("pyarrow")


def processed(path: Path) -> Place:
    """Return a place whose slices are processed."""
    place = Place(path, "s1", "s2")
    place.commit(1, "s1")
    place.commit(2, "s2")
    place.look()
    place.warnings.clear()
    assert set(place.verdicts().values()) == {Verdict.PROCESSED}
    return place


def undone(place: Place, name: str, *, is_skipped: bool = True, base: int = 0, **changed: Any) -> None:
    """Let the log tell that a slice was undone, without a record of it."""
    slices = [{"item_id": place.item(name).item_id, "revision": 1, "is_skipped": is_skipped, **changed}]
    told = {"id": f"u-{name}", "operation": "undo", "base": base, "reason": "broken", "slices": slices}
    marks = {"id": {"type": "long", "value": 1, "item": place.item("s1").item_id}}
    content = {"app": f"{place.application}/undo", "number": 9, "rewind": {**told, "watermarks": marks}}
    properties = CommitProperties({"userMetadata": json.dumps(content)})
    rows = pa.table({"id": pa.array([], pa.int64())})
    write_deltalake(place.silver, rows, mode="append", commit_properties=properties)


def found(place: Place) -> list[str]:
    """Return what the log tells of slices that the manifest lacks."""
    slices = (slice_ for each in unrecorded_rewinds(place.chain) for slice_ in each.slices)
    return [f"{slice_of_id(each.item_id)} is {_state(each)}" for each in slices]


def _state(rewound: RewoundSlice) -> str:
    if rewound.token is not None:
        return "in the table"
    return "skipped" if rewound.is_skipped else "ready again"


def test_an_undo_is_recorded_once_whatever_a_later_version_tells_besides(tmp_path: Path) -> None:
    place = processed(tmp_path)
    assert found(place) == []
    undone(place, "s2", later="unknown")
    assert found(place) == ["s2 is skipped"]
    assert names(place.look().ready) == []
    assert place.verdicts() == {"s1": Verdict.PROCESSED, "s2": Verdict.SKIPPED}
    assert "the manifest lacked version 2 of the table" in place.warnings[0]
    assert found(place) == []
    assert place.ledger.watermarks.last(place.application)["id"].python == 1


def test_a_slice_that_was_processed_again_since_counts_as_such_with_its_watermark(tmp_path: Path) -> None:
    place = processed(tmp_path)
    undone(place, "s2", is_skipped=False)
    place.commit(3, "s2", revision=2)
    assert found(place) == ["s2 is in the table"]
    assert names(place.look().ready) == []
    assert set(place.verdicts().values()) == {Verdict.PROCESSED}
    assert place.item("s2").tokens == {place.application.key: 3}
    assert place.ledger.watermarks.last(place.application)["id"].python == 3
    assert found(place) == []


def test_an_undo_behind_which_a_later_one_went_is_recorded_too(tmp_path: Path) -> None:
    """The table does not build on it: the later one put the table back to a version before it."""
    place = processed(tmp_path)
    undone(place, "s2", base=0)
    undone(place, "s1", is_skipped=False, base=-1)
    assert found(place) == ["s2 is skipped", "s1 is ready again"]
    assert names(place.look().ready) == ["s1"]
    assert place.verdicts() == {"s1": Verdict.READY, "s2": Verdict.SKIPPED}


def test_an_undo_that_a_restore_of_another_program_has_reverted_is_not_recorded(tmp_path: Path) -> None:
    """Table and manifest were put back to before it, and agreed; the slice was to be applied twice."""
    place = processed(tmp_path)
    undone(place, "s2", is_skipped=False)
    DeltaTable(place.silver).restore(1)
    assert found(place) == []
    assert names(place.look().ready) == []
    assert (set(place.verdicts().values()), place.warnings) == ({Verdict.PROCESSED}, [])


def test_slices_that_a_rewind_has_applied_again_are_behind_a_late_one_before_it_is_recorded(
    tmp_path: Path,
) -> None:
    """The numbers that the manifest has of them are those of commits that the rewind has left."""
    place = processed(tmp_path)
    place.put("s1a")
    items = [{"item": place.item(name).item_id, "number": 3} for name in ("s1a", "s2")]
    place.commit(3, "s1a", items=items, rewind={"base": 0, "slices": []})
    assert [each.name for each in place.chain.order] == ["s1", "s1a", "s2"]


def test_of_two_processes_that_record_an_undo_the_second_leaves_what_was_done_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = processed(tmp_path)
    undone(place, "s2", is_skipped=False)
    seen = unrecorded_rewinds(place.chain)
    place.look()
    place.ledger.skip(place.item("s2").item_id, "meanwhile", application=place.application)
    before = copy.copy(place.item("s2"))
    monkeypatch.setattr("lakewright.slices.log_recovery.unrecorded_rewinds", lambda *_: seen)
    record_log(place.bench, place.entity, {})
    assert place.item("s2") == before


def test_a_look_reads_one_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = processed(tmp_path)
    read: list[int | None] = []

    def counted(log: Any, table: Any, limit: int | None) -> Any:
        read.append(limit)
        return read_history(log, table, limit)

    monkeypatch.setattr("lakewright.lake.commit.read_history", counted)
    assert (found(place), read) == ([], [1])


def test_a_rewind_tells_only_what_is_known_of_its_slices() -> None:
    (found,) = rewound_slices([{"item_id": "a", "revision": 1, "new_in_a_later_version": True}])
    assert (found.item_id, found.revision, found.is_skipped) == ("a", 1, False)
