"""Processes that die, hang or race at any point: silver and manifest end as if each slice was processed once.

Headings are those of `processing-manifest.md`; K and C are the faults' numbers.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sessions import no_session
from tests.spark.strategies.bench import SmallLake, entity, hours

from lakewright.errors import ItemLocked, LeaseHeld, LeaseLost, StoreUnavailable, TargetError
from lakewright.lake.commit_lock import commit_lock, lock_file
from lakewright.lake.lake import Lake
from lakewright.lake.table import truncate_table
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.record import State
from lakewright.manifest.store import Write, Written
from lakewright.manifest.verdict import Verdict
from lakewright.slices.discovery import list_slices
from lakewright.slices.pending_slices import find_pending
from lakewright.slices.validation import fail_invalid_slices
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.stores.memory import MemoryStore
from lakewright.strategies import changes as changes_module

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.spec.models.entity import Entity

MODULES = (
    "lakewright.slices.attempt",
    "lakewright.slices.slice_commit",
    "lakewright.strategies.fold",
    "lakewright.strategies.changes",
    "lakewright.strategies.slice_load",
)
BEFORE = ("after_lock", "after_read", "after_facts", "after_compare", "in_guard", "before_commit")
"""Points at which the table hasn't changed yet."""
AFTER = ("after_write", "after_commit", "before_processed")
"""Points at which it has, and the manifest doesn't know."""
RECOVERY = ("after_lock", "before_processed")
"""Points on the way of a run that finds the commit of an earlier one."""
SLICES = [
    [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}, {"id": 3, "v": "c"}],
    [{"id": 1, "v": "a"}, {"id": 2, "v": "x"}, {"id": 4, "v": "d"}],
    [{"id": 1, "v": "b"}, {"id": 3, "v": "c"}, {"id": 5, "v": "e"}],
]


class Died(BaseException):
    """The process ends here: nothing after it runs."""


Strike = Callable[[SmallLake, "Entity", pytest.MonkeyPatch, str, str], None]
"""Process the slice of a name until it ends at a point."""


@contextmanager
def dying(monkeypatch: pytest.MonkeyPatch, point: str) -> Iterator[None]:
    """Let the process die at a point: no handler gets to the manifest any more."""

    def reach_failpoint(name: str) -> None:
        if name == point:
            raise Died(name)

    def gone(*_: Any, **__: Any) -> None:
        raise Died("nothing is written by a dead process")

    has_died = False
    with monkeypatch.context() as patch:
        for module in MODULES:
            patch.setattr(f"{module}.reach_failpoint", reach_failpoint)
        patch.setattr(Ledger, "release", gone)
        patch.setattr(Ledger, "failed", gone)
        try:
            yield
        except Died:
            has_died = True
    assert has_died


def expect_dead(lake: SmallLake) -> None:
    """From now on the holder of every lock is known to be dead."""
    lake.use(lake.store, is_dead=lambda holder: True)


def die_at(lake: SmallLake, things: Entity, monkeypatch: pytest.MonkeyPatch, point: str, name: str) -> None:
    """The run's process dies at a point."""
    with dying(monkeypatch, point):
        lake.process(things, name, processing_time=time_of(name))


def fail_at(lake: SmallLake, things: Entity, monkeypatch: pytest.MonkeyPatch, point: str, name: str) -> None:
    """A run fails at a point with an error of the system; an operator resolves it."""
    with monkeypatch.context() as patch:
        patch.setenv("LAKEWRIGHT_FAILPOINT", f"{point}:raise")
        assert "failpoint" in str(lake.process(things, name, processing_time=time_of(name)).error)
    (item,) = [item for item in lake.items() if item.failed is not None]
    lake.ledger.resolve(item.item_id, "try again")


def time_of(name: str) -> str:
    return hours(int(name[1:])).isoformat()


Strikes = Mapping[str, Sequence[tuple[str, Strike]]]
"""The points at which runs of each slice end one after the other, and how."""

EACH_POINT_ONCE: Strikes = {
    "s1": [("after_lock", die_at), ("before_commit", fail_at), ("after_write", die_at)],
    "s2": [
        *(("after_read", fail_at), ("after_compare", die_at), ("in_guard", fail_at)),
        *(("after_commit", fail_at), ("after_lock", die_at)),
    ],
    "s3": [("after_facts", die_at), ("before_processed", fail_at), ("before_processed", die_at)],
}
AFTER_EACH_WRITE: Strikes = {
    "s1": [("after_write", die_at)],
    "s2": [("after_commit", fail_at), ("after_lock", die_at)],
    "s3": [("before_processed", die_at)],
}
EACH_POINT_IN_EACH_SLICE: Strikes = {
    name: [
        *((point, strike) for point in BEFORE for strike in (die_at, fail_at)),
        (last, fail_at),
        *((point, die_at) for point in RECOVERY * 3),
    ]
    for name, last in zip(("s1", "s2", "s3"), AFTER, strict=True)
}


ALL_POINTS = [
    pytest.param(strategy, strikes, least, id=f"{strategy}-{name}", marks=pytest.mark.nightly)
    for strategy in ("full", "merge", "historic")
    for strikes, least, name in (
        (AFTER_EACH_WRITE, 4, "after each write"),
        (EACH_POINT_ONCE, 10, "each point once again"),
        (EACH_POINT_IN_EACH_SLICE, 50, "each point in each slice"),
    )
]


@pytest.mark.parametrize(
    ("strategy", "strikes", "least"),
    [
        pytest.param("historic", EACH_POINT_ONCE, 10, id="historic-each point once"),
        *ALL_POINTS,
    ],
)
def test_a_run_that_died_anywhere_any_number_of_times_is_made_good_by_the_next(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, strategy: str, strikes: Strikes, least: int
) -> None:
    """ "State": locks, and one commit for a slice whatever happened."""
    calm, things = entity(strategy, name="calm"), entity(strategy)
    for number, rows in enumerate(SLICES, start=1):
        lake.load(calm, f"s{number}", rows, processing_time=time_of(f"s{number}"))
        lake.put(things, f"s{number}", rows)
    expect_dead(lake)

    deaths = 0
    for name, struck in strikes.items():
        compares = strategy != "full" and name != "s1"
        for point, strike in struck:
            if compares or point != "after_compare":
                strike(lake, things, monkeypatch, point, name)
                deaths += 1
        result = lake.process(things, name, processing_time=time_of(name))
        assert result.error is None
        assert result.slices[0].is_adopted

    assert deaths >= least
    columns = [name for name in lake.table(calm).columns if not name.startswith("PK_")]
    assert lake.rows(things, *columns) == lake.rows(calm, *columns)
    assert lake.version(things) == lake.version(calm)
    assert metrics_of(lake, "things") == metrics_of(lake, "calm")


def metrics_of(lake: SmallLake, name: str) -> list[dict[str, Any]]:
    return [
        {**lake.store.records(item.item_id)[-1].content["metrics"], "seconds": 0}
        for item in sorted(lake.items(), key=lambda item: item.item_id)
        if f"/{name}/" in item.item_id
    ]


class Deaf(MemoryStore):
    """A store that writes what it is given, and whose answer is then lost."""

    is_deaf = False

    def write(self, write: Write) -> Written:
        written = super().write(write)
        if self.is_deaf and any(
            draft.state is State.PROCESSED for each in write.appends for draft in each.drafts
        ):
            raise StoreUnavailable("the answer was lost")
        return written


def test_a_record_whose_answer_was_lost_is_there_once(lake: SmallLake) -> None:
    """Watermark and PROCESSED are one write; who asks again finds it done."""
    store = Deaf()
    lake.use(store)
    things = entity(watermark=[{"column_name": "id", "expression": "${last_value}"}])
    lake.put(things, "s1", SLICES[0])
    store.is_deaf = True

    assert isinstance(lake.process(things).error, StoreUnavailable)

    store.is_deaf = False
    again = lake.process(things)
    assert (again.error, again.slices) == (None, ())
    (item,) = lake.items()
    states = [record.state for record in lake.store.records(item.item_id)]
    assert states.count(State.PROCESSED) == 1
    assert lake.ledger.watermarks.last(lake.bench(things).application)["id"].python == 3
    assert lake.version(things) == 0

    # What is processed already starts no query.
    lake.lake = Lake(lake.lake.settings, lake.lake.session, sessions=no_session)
    assert lake.process(things).slices == ()


@pytest.mark.nightly
@pytest.mark.parametrize("strategy", ["full", "merge", "historic"])
def test_data_files_without_their_commit_are_seen_by_nobody(lake: SmallLake, strategy: str) -> None:
    """What a kill leaves between the data files and the commit's name, at first and later."""
    things, other = entity(strategy), entity(strategy, name="other")
    lake.load(other, "s1", SLICES[0])
    files = [lake.folder(other) / name for name in sorted(lake.files(other))]
    for version in (0, 1):
        leave_unnamed(lake, things, version, files)
        summary = lake.load(things, f"s{version + 1}", SLICES[version])
        assert (summary.delta_version, lake.version(things)) == (version, version)
    leave_unnamed(lake, things, 2, files)
    assert len(lake.rows(things, "id")) == {"full": 3, "merge": 4, "historic": 5}[strategy]
    assert {row[0] for row in lake.rows(things, "id")} == ({1, 2, 4} if strategy == "full" else {1, 2, 3, 4})


def leave_unnamed(lake: SmallLake, things: Entity, version: int, files: list[Path]) -> None:
    """Put down data files, and half of a commit under the name that it has before its own."""
    folder = lake.folder(things)
    (folder / "_delta_log").mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy(file, folder / f"part-{version}-{file.name}")
    unnamed = folder / "_delta_log" / f".{version:020}.json.8c1e.tmp"
    unnamed.write_text('{"commitInfo": {"timestamp": 17')


def tear(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def lie(file: Path) -> None:
    file.write_text(re.sub(r'"num(Files|Records)":\d+', '"num\\1":7', file.read_text()))


DAMAGES: list[tuple[str, Callable[[Path], None]]] = [
    ("_last_checkpoint", tear),
    ("0*.crc", tear),
    ("0*.crc", lie),
]


@pytest.mark.nightly
def test_what_delta_keeps_beside_its_log_may_be_damaged(lake: SmallLake) -> None:
    """What these help with, the log tells too."""
    things = entity("historic", settings={"table_properties": {"delta.checkpointInterval": "1"}})
    lake.load(things, "s1", SLICES[0])
    lake.load(things, "s2", SLICES[1])
    log = lake.folder(things) / "_delta_log"
    current = {1: "a", 2: "x", 3: "c", 4: "d"}
    for number, (pattern, damage) in enumerate(DAMAGES, start=3):
        expected = lake.rows(things, "id", "v")
        damaged = list(log.glob(pattern))
        assert damaged
        for file in damaged:
            damage(file)
        forget_logs(lake)

        assert rows_in_spark(lake, things) == expected
        slice_ = {1: f"changed {number}", 3: "c", 10 + number: "new"}
        summary = lake.load(things, f"s{number}", [{"id": key, "v": v} for key, v in slice_.items()])

        assert (summary.inserted, summary.updated, summary.unchanged) == (1, 1, 1)
        current |= slice_
        found = lake.rows(things, "id", "v", "dlf_IsCurrent")
        assert {key: value for key, value, is_current in found if is_current} == current


def rows_in_spark(lake: SmallLake, things: Entity) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in lake.table(things).select("id", "v").collect()), key=repr)


def forget_logs(lake: SmallLake) -> None:
    """Have Spark read the tables' logs anew."""
    jvm: Any = lake.spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


@pytest.mark.nightly
def test_a_torn_checkpoint_is_named_with_the_way_out(lake: SmallLake) -> None:
    """Nothing reads the table, so nothing is written; without the checkpoint all goes on."""
    things = entity(settings={"table_properties": {"delta.checkpointInterval": "1"}})
    lake.load(things, "s1", SLICES[0])
    lake.load(things, "s2", SLICES[1])
    expected = lake.rows(things, "id", "v")
    log = lake.folder(things) / "_delta_log"
    for file in log.glob("0*.checkpoint*.parquet"):
        tear(file)

    lake.put(things, "s3", SLICES[2])
    with pytest.raises(TargetError, match=r"checkpoint\.parquet is damaged") as raised:
        lake.process(things)

    assert sorted(raised.value.details["torn"]) == sorted(
        file.name for file in log.glob("0*.checkpoint*.parquet")
    )
    for file in [*log.glob("*.checkpoint*"), log / "_last_checkpoint"]:
        file.unlink()
    forget_logs(lake)
    assert rows_in_spark(lake, things) == expected
    assert lake.process(things).slices[0].summary.inserted == 1


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
    """A holder that lost its lease stops before its commit."""
    things = entity()
    lake.put(things, "s1", SLICES[0])

    def take_over(name: str) -> None:
        if name == "after_read":
            (item,) = lake.items()
            lake.ledger.release(item.item_id, "taken over", is_forced=True)

    monkeypatch.setattr("lakewright.slices.slice_commit.reach_failpoint", take_over)
    assert isinstance(lake.process(things).error, LeaseLost)
    assert lake.version_or_none(things) is None
    (item,) = lake.items()
    assert item.verdict(lake.bench(things).application) is Verdict.READY


def test_the_end_of_the_jvm_is_no_failure_of_the_slice(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has to resolve what the next run does all the same."""
    things = entity()
    lake.put(things, "s1", SLICES[0])
    monkeypatch.setattr("lakewright.strategies.failures.is_jvm_failure", lambda _: True)
    monkeypatch.setenv("LAKEWRIGHT_FAILPOINT", "before_commit:raise")
    error = lake.process(things).error
    assert error is not None
    assert error.message.endswith("Spark's JVM has ended")
    (item,) = lake.items()
    assert item.verdict(lake.bench(things).application) is Verdict.READY


def test_a_slice_that_was_failed_before_an_earlier_one_was_processed_is_resolved_and_applied(
    lake: SmallLake,
) -> None:
    """ "State" (Resolved): VALIDATE numbers the broken slice first; the table then has a later number."""
    things = entity()
    lake.put(things, "s1", SLICES[0])
    broken_slice = lake.put(things, "s2", SLICES[1])
    broken_slice.write_bytes(b"PAR1garbagePAR1")
    bench = lake.bench(things)
    pending = find_pending(bench, things)
    assert [error.code for error in fail_invalid_slices(bench, things, pending)] == ["slice"]
    assert [done.name for done in lake.process(things).slices] == ["s1"]

    lake.put(things, "s2", SLICES[1])
    (item,) = [item for item in lake.items() if item.failed is not None]
    application = bench.application
    assert item.tokens == {application.key: 1}
    fingerprint = next(
        s.fingerprint for s in list_slices(SliceFolder(str(broken_slice.parent)), lake.lake) if s.name == "s2"
    )
    lake.ledger.resolve(item.item_id, "sent anew", fingerprint=fingerprint)
    with dying(pytest.MonkeyPatch(), "after_commit"):
        lake.process(things)
    assert lake.ledger.item(item.item_id).tokens == {application.key: 3}
    expect_dead(lake)

    result = lake.process(things)

    assert [(done.name, done.is_adopted) for done in result.slices] == [("s2", True)]
    assert lake.rows(things, "id", "v") == [(1, "a"), (2, "x"), (3, "c"), (4, "d")]
    assert lake.version(things) == 1


@pytest.mark.nightly  # due/test_histories.py loses manifests
def test_what_is_in_the_table_is_not_applied_again_after_the_manifest_is_lost(lake: SmallLake) -> None:
    """Rows, metrics and watermarks are as if nothing had happened."""
    things = entity("historic", watermark=[{"column_name": "id", "expression": "${last_value}"}])
    lake.load(things, "s1", SLICES[0])
    lake.load(things, "s2", SLICES[1])
    told = metrics_of(lake, "things")
    application = lake.bench(things).application
    brought = lake.ledger.watermarks.last(application)
    lake.put(things, "s3", SLICES[2])
    lake.use(MemoryStore())

    assert [done.name for done in lake.process(things).slices] == ["s3"]

    assert metrics_of(lake, "things")[:2] == told
    assert lake.ledger.watermarks.last(application)["id"].python == 5
    assert brought["id"].python == 4
    assert lake.version(things) == 2
    assert sorted(item.tokens[application.key] for item in lake.items()) == [1, 2, 3]


@pytest.mark.nightly
def test_what_truncate_removed_is_applied_again_after_the_manifest_is_lost(lake: SmallLake) -> None:
    """The numbers of its commits go on where the log of the table ended."""
    things = entity("historic")
    for number, rows in enumerate(SLICES, start=1):
        lake.load(things, f"s{number}", rows)
    truncate_table(lake.lake, things.places(lake.lake.settings).silver)
    lake.use(MemoryStore())

    assert [done.name for done in lake.process(things).slices] == ["s1", "s2", "s3"]
    key = lake.bench(things).application.key
    assert sorted(item.tokens[key] for item in lake.items()) == [4, 5, 6]


def test_a_writer_in_between_makes_the_slice_be_compared_anew(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
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

    monkeypatch.setattr("lakewright.strategies.writing.compare", compare_and_interfere)
    summary = lake.load(things, "s2", SLICES[1])

    assert len(seen) == 2
    assert summary.changed == 2
    assert lake.rows(things, "id", "v") == [(1, "a"), (2, "x"), (3, "c"), (4, "d")]


def test_a_table_that_another_process_commits_to_is_waited_for_and_then_left(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a local file system a lock of the operating system guards commits."""
    things = entity()
    silver = things.places(lake.lake.settings).silver
    monkeypatch.setattr("lakewright.lake.commit_lock.PATIENCE", 0.1)
    with commit_lock(silver, "somebody else"):
        error = lake.fail(things, "s1", SLICES[0])

    assert isinstance(error, LeaseHeld)
    assert "somebody else" in error.message
    (item,) = lake.items()
    assert item.verdict(lake.bench(things).application) is Verdict.READY
    assert lake.process(things).error is None
    assert not lock_file(Path(silver.location or "")).exists()


def test_a_token_is_for_one_commit_alone(lake: SmallLake) -> None:
    one, other = entity(name="one"), entity(name="other")
    lake.load(one, "s1", SLICES[0])
    lake.spark.range(1).write.format("delta").save(str(lake.root / "elsewhere"))
    lake.load(other, "s1", SLICES[0])

    from deltalake import DeltaTable

    assert "userMetadata" not in DeltaTable(lake.root / "elsewhere").history(1)[0]
    assert lake.version(other) == 0


RUN = """
import sys
from pathlib import Path
from lakewright.spark.conf import SessionSettings
from lakewright.spark.session_builder import build_session
from tests.spark.strategies.bench import SmallLake, entity, hours
root = Path(sys.argv[1])
lake = SmallLake.shared(build_session(SessionSettings(root / "state", master="local[1]")), root)
lake.load(entity("historic"), "s2", [{"id": 1, "v": "b"}], processing_time=hours(2).isoformat())
"""


@pytest.mark.nightly
def test_a_process_that_is_killed_after_its_commit_is_made_good(spark: SparkSession, tmp_path: Path) -> None:
    """kill -9 after the commit; the manifest was never told, so the next run takes it from the table."""
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
