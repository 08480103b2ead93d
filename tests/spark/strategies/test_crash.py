"""Processes that die, hang or race at any point: silver and manifest end as if each slice was processed once.

Headings are those of `processing-manifest.md`; K and C are the faults' numbers.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity, hours

from lakewright.errors import CommitConflict, ItemLocked, LeaseHeld, LeaseLost
from lakewright.lake.commit import landed
from lakewright.lake.guard import guarded, lock_file
from lakewright.manifest.item import Verdict
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.record import State
from lakewright.strategies import changes as changes_module

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODULES = ("lakewright.slices.attempt", "lakewright.strategies.work")
POINTS = ("after_lock", "after_read", "before_commit", "after_commit", "before_processed")
SLICES = [
    [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}, {"id": 3, "v": "c"}],
    [{"id": 1, "v": "a"}, {"id": 2, "v": "x"}, {"id": 4, "v": "d"}],
]


class Died(BaseException):
    """The process ends here: nothing after it runs."""


@contextmanager
def dying(monkeypatch: pytest.MonkeyPatch, point: str) -> Iterator[None]:
    """Let the process die at a point: no handler gets to the manifest any more."""

    def pass_point(name: str) -> None:
        if name == point:
            raise Died(name)

    def gone(*_: Any, **__: Any) -> None:
        raise Died("nothing is written by a dead process")

    has_died = False
    with monkeypatch.context() as patch:
        for module in MODULES:
            patch.setattr(f"{module}.pass_point", pass_point)
        patch.setattr(Ledger, "release", gone)
        patch.setattr(Ledger, "failed", gone)
        try:
            yield
        except Died:
            has_died = True
    assert has_died


def expect_dead(lake: SmallLake) -> None:
    """From now on the holder of every lock is known to be dead."""
    lake.ledger._is_dead = lambda holder: True


@pytest.mark.parametrize("strategy", ["full", "merge", "historic"])
def test_a_run_that_died_anywhere_is_made_good_by_the_next(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    """K1 to K5, K10, K13; "State": locks, and one commit for a slice whatever happened."""
    calm, things = entity(strategy, name="calm"), entity(strategy)
    for number, rows in enumerate(SLICES, start=1):
        lake.load(calm, f"s{number}", rows, processing_time=hours(number).isoformat())
        lake.put(things, f"s{number}", rows)
    expect_dead(lake)

    for number in (1, 2):
        for point in POINTS:
            with dying(monkeypatch, point):
                lake.process(things, f"s{number}", processing_time=hours(number).isoformat())
        result = lake.process(things, f"s{number}", processing_time=hours(number).isoformat())
        assert result.error is None
        assert result.slices[0].is_adopted

    columns = [name for name in lake.table(calm).columns if not name.startswith("PK_")]
    assert lake.rows(things, *columns) == lake.rows(calm, *columns)
    assert lake.version(things) == lake.version(calm)
    for name in ("calm", "things"):
        metrics = [
            {**lake.store.records(item.item_id)[-1].content["metrics"], "seconds": 0}
            for item in lake.items()
            if f"/{name}/" in item.item_id
        ]
        assert [numbers["recordsInSlice"] for numbers in metrics] == [3, 3]
        assert metrics[1]["inserted"] == (3 if strategy == "full" else 1)


def test_a_lock_that_is_alive_is_left_alone(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "State" (Processing): of several runs one processes an item, the others say who holds it."""
    things = entity()
    lake.put(things, "s1", SLICES[0])
    with dying(monkeypatch, "after_lock"):
        lake.process(things)

    error = lake.process(things).error

    assert isinstance(error, ItemLocked)
    assert "run-1" in error.message
    assert not lake.files(things)


def test_a_holder_whose_lock_was_taken_over_writes_nothing(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C2, C4: a holder that lost its lease stops before its commit."""
    things = entity()
    lake.put(things, "s1", SLICES[0])

    def take_over(name: str) -> None:
        if name == "after_read":
            (item,) = lake.items()
            lake.ledger.release(item.item_id, "taken over", is_forced=True)

    monkeypatch.setattr("lakewright.slices.attempt.pass_point", take_over)
    assert isinstance(lake.process(things).error, LeaseLost)
    assert lake.version_or_none(things) is None
    (item,) = lake.items()
    assert item.verdict(lake.bench(things).application) is Verdict.READY


def test_a_commit_that_comes_too_late_is_refused_loudly(lake: SmallLake) -> None:
    """C3: Delta would leave out silently what has a smaller number."""
    things = entity()
    lake.load(things, "s1", SLICES[0])
    lake.load(things, "s2", SLICES[1])
    application = str(lake.bench(things).application)
    silver = things.places(lake.lake.settings).silver

    first = landed(lake.lake, silver, application, 1)

    assert first is not None
    assert first.content["item"].endswith("s1")
    with pytest.raises(CommitConflict):
        landed(lake.lake, silver, application, 0)


def test_a_writer_in_between_makes_the_slice_be_compared_anew(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C7."""
    things = entity(settings={"last_seen": "on_change"})
    lake.load(things, "s1", SLICES[0])
    silver = things.places(lake.lake.settings).silver.sql
    seen: list[Any] = []

    def compare_and_interfere(*arguments: Any) -> Any:
        changes = changes_module.compare(*arguments)
        if not seen:
            lake.spark.sql(f"UPDATE {silver} SET v = 'other', dlf_SourceHash = 'other' WHERE id = 1")
        seen.append(changes)
        return changes

    monkeypatch.setattr("lakewright.strategies.merge.compare", compare_and_interfere)
    summary = lake.load(things, "s2", SLICES[1])

    assert len(seen) == 2
    assert summary.changed == 2
    assert lake.rows(things, "id", "v") == [(1, "a"), (2, "x"), (3, "c"), (4, "d")]


def test_a_table_that_another_process_commits_to_is_waited_for_and_then_left(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C8: on a local file system a lock of the operating system guards commits."""
    things = entity()
    silver = things.places(lake.lake.settings).silver
    monkeypatch.setattr("lakewright.lake.guard.PATIENCE", 0.1)
    with guarded(silver, "somebody else"):
        error = lake.fail(things, "s1", SLICES[0])

    assert isinstance(error, LeaseHeld)
    assert "somebody else" in error.message
    (item,) = lake.items()
    assert item.verdict(lake.bench(things).application) is Verdict.READY
    assert lake.process(things).error is None
    assert lock_file(Path(silver.location or "")).exists()


def test_a_token_is_for_one_commit_alone(lake: SmallLake) -> None:
    """C9, C10."""
    one, other = entity(name="one"), entity(name="other")
    lake.load(one, "s1", SLICES[0])
    lake.spark.range(1).write.format("delta").save(str(lake.root / "elsewhere"))
    lake.load(other, "s1", SLICES[0])

    from deltalake import DeltaTable

    assert "userMetadata" not in DeltaTable(lake.root / "elsewhere").history(1)[0]
    assert lake.version(other) == 0


def test_what_is_already_processed_starts_no_query(lake: SmallLake) -> None:
    """P2."""
    things = entity()
    lake.load(things, "s1", SLICES[0])
    lake.lake._spark = None
    lake.lake._start = lambda _: pytest.fail("no session is needed")

    assert lake.process(things).slices == ()


RUN = """
import sys
from pathlib import Path
from lakewright.lake.session import SessionSettings, build_session
from tests.spark.strategies.bench import SmallLake, entity, hours
root = Path(sys.argv[1])
lake = SmallLake.shared(build_session(SessionSettings(root / "state", master="local[1]")), root)
lake.load(entity("historic"), "s2", [{"id": 1, "v": "b"}], processing_time=hours(2).isoformat())
"""


def test_a_process_that_is_killed_after_its_commit_is_made_good(spark: SparkSession, tmp_path: Path) -> None:
    """K4: kill -9 after the commit; the manifest was never told, so the next run takes it from the table."""
    lake = SmallLake.shared(spark, tmp_path)
    things = entity("historic")
    lake.load(things, "s1", [{"id": 1, "v": "a"}], processing_time=hours(1).isoformat())
    environ = {**os.environ, "LAKEWRIGHT_FAILPOINT": "after_commit:kill"}
    killed = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path)], env=environ, capture_output=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()

    result = lake.process(things, processing_time=hours(9).isoformat())

    assert [(done.name, done.is_adopted, done.summary.updated) for done in result.slices] == [("s2", True, 1)]
    assert lake.version(things) == 1
    assert lake.rows(things, "v", "dlf_ValidFrom", "dlf_ValidTo") == [("a", 1.0, 2.0), ("b", 2.0, None)]
    states = {record.state for item in lake.items() for record in lake.store.records(item.item_id)}
    assert State.FAILED not in states
