"""Undo and rebuild of a small lake under faults."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from tests.disks import full_but_for, mounted
from tests.spark.strategies.bench import SmallLake, entity, pa
from tests.spark.strategies.rewinding import rebuild_in, undo_in

from lakewright.errors import CommitConflict, DataLossError, StorageUnavailable
from lakewright.lake.spark_errors import EVERYWHERE, translated
from lakewright.manifest.verdict import Verdict
from lakewright.slices.rewind.settlement import settle_rewind
from lakewright.slices.rewind.undo_rebuild import RebuildStart, plan_rebuild, plan_undo
from lakewright.targets.entity.maintenance import look_at_silver, maintain

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakewright.spec.models.entity import Entity

BY_DAY = "${slice.date}"
ROWS: list[list[dict[str, Any]]] = [
    [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}],
    [{"id": 1, "v": "a"}, {"id": 2, "v": "x"}, {"id": 3, "v": "c"}],
    [{"id": 3, "v": "c"}, {"id": 4, "v": "d"}],
    [{"id": 1, "v": "z"}, {"id": 4, "v": "d"}],
    [{"id": 2, "v": "x"}, {"id": 4, "v": "e"}],
    [{"id": 1, "v": "y"}],
]
FEW = ("after_commit", "after_rewind")
ALL = (
    *("before_replay", "after_compare", "in_guard", "before_commit", "after_write", "before_swap"),
    *("before_rewind", "after_rewind", "before_rewind_record"),
)
"""Points of a rewind: of the fold of its replay, and of its swap.

A fold that has landed is not replayed again, so what else comes after its write needs a lake of its own.
"""
REPLAYED = ("after_replay", "before_rewind_record")
LANDED = ("after_rewind", "before_rewind_record")
PROCESSED = Verdict.PROCESSED
MODULES = (
    "lakewright.slices.slice_replay",
    "lakewright.slices.rewind.execution",
    *(f"lakewright.strategies.{name}" for name in ("fold", "slice_load")),
)


class Died(BaseException):
    """The process ends here."""


def processed(lake: SmallLake, *, rows: list[list[dict[str, Any]]] = ROWS, **declared: Any) -> Entity:
    """Return an entity of the strategy Historic, all slices of which are in its table."""
    things = entity("historic", **declared)
    for day, each in enumerate(rows, 1):
        lake.put(things, f"2024-01-{day:02}", each)
    assert lake.process(things, processing_time=BY_DAY).error is None
    return things


def own_rows(lake: SmallLake, things: Entity) -> list[tuple[Any, ...]]:
    return lake.rows(things, "id", "v", "dlf_ValidFrom", "dlf_ValidTo", "dlf_IsCurrent", "dlf_deleted")


@contextmanager
def dying(monkeypatch: pytest.MonkeyPatch, point: str) -> Iterator[None]:
    """Let the process die at a point."""

    def reach_failpoint(name: str) -> None:
        if name == point:
            raise Died(name)

    with monkeypatch.context() as patch:
        for module in MODULES:
            patch.setattr(f"{module}.reach_failpoint", reach_failpoint)
        with pytest.raises(Died, match=point):
            yield


def ended(lake: SmallLake, things: Entity) -> bool:
    """End a rewind as the next command does; return whether its commit had landed."""
    return settle_rewind(lake.bench(things), things)


@pytest.mark.parametrize(
    "points", [FEW, *(pytest.param(points, marks=pytest.mark.nightly) for points in (ALL, REPLAYED))]
)
def test_a_rebuild_that_dies_in_its_fold_or_its_swap_goes_on(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, points: tuple[str, ...]
) -> None:
    """The table is as it was until the swap, and the next attempt goes on from what is beside it."""
    things = processed(lake)
    before, folded = own_rows(lake, things), lake.version(things)
    for point in points:
        with dying(monkeypatch, point):
            rebuild_in(lake, things)
        is_landed = point in LANDED
        assert ended(lake, things) is is_landed, point
        assert own_rows(lake, things) == before, point
        assert (lake.version(things) > folded) is is_landed, point
        folded = lake.version(things)
        assert {item.verdict(lake.bench(things).application) for item in lake.items()} == {PROCESSED}
    assert rebuild_in(lake, things) > folded
    assert own_rows(lake, things) == before
    assert any("is continued" in warning for warning in lake.warnings)
    assert lake.load(things, "2024-01-07", [{"id": 1, "v": "y"}], processing_time=BY_DAY).unchanged == 1


@pytest.mark.nightly
def test_an_undo_that_dies_in_its_fold_or_its_swap_goes_on(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slices of one commit are applied again in one commit but for the undone one."""
    things = processed(lake)
    before = own_rows(lake, things)
    for point in ("after_compare", "after_commit", "before_rewind"):
        with dying(monkeypatch, point):
            undo_in(lake, things, "2024-01-03")
        assert not ended(lake, things), point
        assert own_rows(lake, things) == before, point
    with dying(monkeypatch, "before_rewind_record"):
        undo_in(lake, things, "2024-01-03")
    assert ended(lake, things)
    other = processed(lake, name="other", rows=[*ROWS[:2], [{"id": 9, "v": "?"}], *ROWS[3:]])
    undo_in(lake, other, "2024-01-03")
    assert own_rows(lake, things) == own_rows(lake, other)
    assert not any(row[0] == 9 for row in own_rows(lake, other))
    assert own_rows(lake, things) != before

    # The last slice, which has a commit of its own, is undone by one commit.
    version, without = lake.version(things), own_rows(lake, things)
    lake.load(things, "2024-01-07", [{"id": 1, "v": "?"}], processing_time=BY_DAY)
    for point, is_landed in (("before_rewind", False), ("after_rewind", True)):
        with dying(monkeypatch, point):
            undo_in(lake, things, "2024-01-07")
        assert ended(lake, things) is is_landed
        assert (own_rows(lake, things) == without) is is_landed
    assert lake.version(things) == version + 2


def test_a_commit_of_another_writer_in_between_is_not_lost(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rewind ends without a commit; typed again, it names the other writer's commit."""
    from deltalake import write_deltalake

    things = processed(lake, rows=ROWS[:2])

    def write(name: str) -> None:
        if name == "before_swap":
            write_deltalake(lake.folder(things), lake.arrow(things).slice(0, 1), mode="append")

    with monkeypatch.context() as patch:
        patch.setattr("lakewright.slices.rewind.execution.reach_failpoint", write)
        with pytest.raises(CommitConflict, match="since this began"):
            rebuild_in(lake, things)
    assert not ended(lake, things)
    written = own_rows(lake, things)
    for plan in (partial(plan_undo, name="2024-01-02"), partial(plan_rebuild, start=RebuildStart())):
        with pytest.raises(DataLossError, match="would be lost") as refused:
            plan(lake.bench(things), things)
        assert "--over-foreign" in (refused.value.remedy or "")
    assert own_rows(lake, things) == written


@pytest.mark.nightly
def test_a_commit_of_another_writer_after_the_last_check_is_told(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing holds the other writer back then: it is told what became of its commit."""
    from deltalake import write_deltalake

    other = processed(lake, name="other", rows=ROWS[:2])

    def write_late(name: str) -> None:
        if name == "before_rewind":
            write_deltalake(lake.folder(other), lake.arrow(other).slice(0, 1), mode="append")

    version = lake.version(other)
    with monkeypatch.context() as patch:
        patch.setattr("lakewright.slices.rewind.execution.reach_failpoint", write_late)
        assert rebuild_in(lake, other) == version + 2
    told = f"another program committed version {version + 1} just before version {version + 2}"
    assert any(told in warning for warning in lake.warnings)


@pytest.mark.nightly
def test_a_disk_that_is_full_in_a_replay_leaves_the_table_whole(lake: SmallLake) -> None:
    """The error names the disk; with room, the same command goes on."""
    things = entity("historic")
    silver = lake.folder(things).parent
    with mounted(silver):
        processed(lake)
        before = own_rows(lake, things)
        failures = 0
        for pages in (0, 2, 8, 16):
            with full_but_for(silver, pages):
                error = error_of(lambda: rebuild_in(lake, things))
            if error is None:
                break
            failures += 1
            ours = translated(error, "during `rebuild things`", EVERYWHERE) or error
            assert isinstance(ours, StorageUnavailable), ours
            assert "No space left on device" in ours.message
            assert not ended(lake, things)
            assert own_rows(lake, things) == before
        assert failures >= 2
        rebuild_in(lake, things)
        assert own_rows(lake, things) == before
        assert not list(silver.glob("*__rebuild"))


def error_of(do: Callable[[], object]) -> Exception | None:
    try:
        do()
    except Exception as error:
        return error
    return None


def aged(lake: SmallLake, things: Entity, days: int) -> None:
    """Let all that has happened to a table have happened that many days earlier, as VACUUM sees it."""
    folder, past = lake.folder(things), timedelta(days=days)

    def earlier(match: re.Match[str]) -> str:
        return f"{match[1]}{int(match[2]) - past // timedelta(milliseconds=1)}"

    for log in folder.glob("_delta_log/*.json"):
        log.write_text(re.sub(r'("deletionTimestamp":)(\d+)', earlier, log.read_text()))
        (log.parent / f".{log.name}.crc").unlink(missing_ok=True)
    for file in folder.rglob("*.parquet"):
        os.utime(file, times=(time.time() - past.total_seconds(),) * 2)
    jvm: Any = lake.spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


TIDY = {"maintenance": {"small_files": 2, "file_mib": 1, "vacuum": True}}


def vacuumed(lake: SmallLake, things: Entity) -> None:
    """Load two slices, and remove the files that the table has not needed for twenty days."""
    for day, v in enumerate("ab", 1):
        lake.load(things, f"2024-01-0{day}", [{"id": n, "v": v} for n in range(3)])
    aged(lake, things, 20)
    lake.spark.sql(f"VACUUM {things.places(lake.lake.settings).silver.sql}").collect()


def test_a_slice_of_a_table_without_rows_is_undone(lake: SmallLake) -> None:
    """A DELETE made no commit to such a table, so that the undo waited for one."""
    things, schema = entity(), [("id", pa.int64()), ("v", pa.string())]
    for name in ("s1", "s2"):
        lake.load(things, name, [], schema)
    undo_in(lake, things, "s1", is_requeued=True)
    assert [done.name for done in lake.process(things).slices] == ["s1", "s2"]
    undo_in(lake, things, "s1")
    assert lake.rows(things, "id") == []


@pytest.mark.nightly
def test_what_a_vacuum_has_removed_is_no_base_of_an_undo(lake: SmallLake) -> None:
    """Without `undo_window`, a VACUUM removes files after 7 days; the slices themselves remain."""
    plain = entity(name="plain", settings=TIDY)
    vacuumed(lake, plain)
    with pytest.raises(DataLossError, match="is not whole any more"):
        plan_undo(lake.bench(plain), plain, "2024-01-02")
    with pytest.raises(DataLossError, match="is not whole any more"):
        plan_rebuild(lake.bench(plain), plain, RebuildStart(slice="2024-01-02"))
    assert plan_rebuild(lake.bench(plain), plain, RebuildStart()).replay.base is None


@pytest.mark.nightly
def test_vacuum_keeps_what_an_undo_needs_for_the_undo_window(lake: SmallLake) -> None:
    """`undo_window`: part 6. A VACUUM removes files after the time that the entity says."""
    kept = entity(name="kept", settings={**TIDY, "undo_window": "30d"})
    later = entity(name="later", settings={"undo_window": "60d"})
    vacuumed(lake, kept)
    before = undo_in(lake, kept, "2024-01-02")
    assert before is not None
    assert {row[1] for row in lake.rows(kept, "id", "v")} == {"a"}

    # An entity that says it later: `maintain` sets it, although there is nothing to compact.
    without = kept.settings.model_copy(update={"undo_window": None})
    lake.load(later.model_copy(update={"settings": without}), "2024-01-01", [{"id": 1, "v": "a"}])
    assert look_at_silver(lake.lake, later).as_json()["undo_window_begins"]
    done = maintain(lake.lake, lake.leases(), later)
    assert (done.is_done, done.kept, done.retention) == (False, "60d", {})
    found = lake.delta(later).metadata().configuration
    assert found["delta.deletedFileRetentionDuration"] == "interval 60 days"
    assert found["delta.logRetentionDuration"] == "interval 60 days"
    assert not look_at_silver(lake.lake, later).retention


@pytest.mark.nightly
def test_rows_that_were_put_aside_go_with_an_undo(lake: SmallLake) -> None:
    """The quarantine has the rows of the slices in the table, and only those."""
    things = entity(name="aside", settings={"on_bad_rows": "quarantine"})
    bad = {"id": None, "v": "?"}
    for day, rows in enumerate(([{"id": 1, "v": "a"}], [{"id": 2, "v": "b"}, bad], [bad, {"id": 3}]), 1):
        lake.load(things, f"2024-01-0{day}", rows, [("id", pa.int64()), ("v", pa.string())])
    folder = lake.root / "quarantine" / "crm" / "aside"

    def aside() -> list[str]:
        return sorted(str(file.parent.relative_to(folder)) for file in folder.rglob("*.json"))

    before = aside()
    assert before == ["2024-01-02", "2024-01-03"]
    undo_in(lake, things, "2024-01-01")
    assert aside() == before
    assert "aside: 2024-01-02: 1 bad row is put aside: " in "".join(lake.warnings)
    undo_in(lake, things, "2024-01-02")
    assert aside() == ["2024-01-03"]
    assert lake.rows(things, "id") == [(3,)]
