"""What can be wrong with a SQLite file, and what keeps it right."""

from __future__ import annotations

import os
import re
import resource
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from tests.records import ITEM, REGIONS, claim, draft, found, ledger_of, put_down

from lakewright.errors import (
    ItemLocked,
    LakewrightError,
    ManifestCorrupt,
    NotInstalled,
    StoreBusy,
    StoreUnavailable,
)
from lakewright.manifest.record import State
from lakewright.manifest.store import Put, Query, Write
from lakewright.manifest.verdict import Verdict
from lakewright.stores.registry import read_store
from lakewright.stores.sql import tables
from lakewright.stores.sqlite import database
from lakewright.stores.sqlite.database import SqliteStore
from lakewright.upkeep.fsck import fsck


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "manifest.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path)) as opened:
        yield opened


def refusal(act: Callable[[], object]) -> LakewrightError:
    with pytest.raises(LakewrightError) as caught:
        act()
    return caught.value


def test_every_connection_syncs_each_commit_and_writes_ahead(store: SqliteStore) -> None:
    put_down(store, draft("new", "NEW"))
    for use in (store._database.read, store._database.write):
        assert use(lambda connection: connection.scalar(text("PRAGMA synchronous"))) == 2
        assert use(lambda connection: connection.scalar(text("PRAGMA journal_mode"))) == "wal"


def test_what_was_written_is_there_for_the_next(path: Path, store: SqliteStore) -> None:
    put_down(store, draft("new", "NEW"))
    with closing(SqliteStore(path)) as other:
        assert [record.record_id for record in other.records(ITEM)] == ["new"]
        put_down(other, draft("lock", "PROCESSING", "new"))
    assert [record.record_id for record in store.records(ITEM)] == ["new", "lock"]


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"id,name\n1,x\n", b"\x00" * 5_000])
def test_a_file_that_is_something_else_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    error = refusal(lambda: SqliteStore(path))
    assert isinstance(error, StoreUnavailable)
    assert "isn't a SQLite file" in error.message
    assert str(path) in error.message
    assert path.read_bytes() == content
    assert f"mv {path} {path}.damaged" in str(error.remedy)


def test_a_folder_in_the_files_place_is_refused(tmp_path: Path) -> None:
    assert isinstance(refusal(lambda: SqliteStore(tmp_path)), StoreUnavailable)


def test_a_place_where_no_folder_can_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    error = refusal(lambda: SqliteStore(tmp_path / "file" / "manifest.db"))
    assert isinstance(error, StoreUnavailable)
    assert "folder of the manifest" in error.message


def _scrambled(content: bytes) -> bytes:
    return content[:8_192] + bytes(255 - byte for byte in content[8_192:])


def _truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


@pytest.mark.parametrize("damage", [_scrambled, _truncated])
def test_a_damaged_file_is_told(path: Path, damage: Callable[[bytes], bytes]) -> None:
    with closing(SqliteStore(path)) as store:
        for number in range(50):
            put_down(store, draft(f"r{number}", "NEW", item=f"i{number}", content={"x": "y" * 2_000}))
    path.write_bytes(damage(path.read_bytes()))

    def use() -> None:
        with closing(SqliteStore(path)) as store:
            list(store.history())

    error = refusal(use)
    assert isinstance(error, ManifestCorrupt)
    assert f"{path} is damaged" in error.message
    assert f"mv {path} {path}.damaged; rm -f {path}-wal {path}-shm" in str(error.remedy)


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder where this test may look but, not being root while in it, not write."""
    folder = Path(tempfile.mkdtemp(prefix="lakewright-"))
    with closing(SqliteStore(folder / "manifest.db")) as store:
        put_down(store, draft("new", "NEW"))
    (folder / "manifest.db").chmod(0o444)
    folder.chmod(0o555)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65_534)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_file_that_cannot_be_written_is_told(unprivileged: Path) -> None:
    def use() -> None:
        with closing(SqliteStore(unprivileged / "manifest.db")) as store:
            put_down(store, draft("lock", "PROCESSING", "new"))

    error = refusal(use)
    assert isinstance(error, StoreUnavailable)
    assert re.search("can't be (written|opened)", error.message)
    assert error.remedy is not None


def test_a_folder_that_cannot_be_written_is_told(unprivileged: Path) -> None:
    assert isinstance(refusal(lambda: SqliteStore(unprivileged / "new.db")), StoreUnavailable)


def test_a_full_disk_leaves_all_as_it_was(path: Path, store: SqliteStore) -> None:
    put_down(store, draft("new", "NEW"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    wal = path.with_name(path.name + "-wal")
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(wal.stat().st_size, path.stat().st_size) + 10_000, hard))
    try:
        error = refusal(lambda: put_down(store, draft("big", "NEW", content={"x": "y" * 3_000_000})))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert isinstance(error, StoreUnavailable)
    assert error.remedy is not None
    assert [record.record_id for record in store.records(ITEM)] == ["new"]
    put_down(store, draft("lock", "PROCESSING", "new"))
    with closing(SqliteStore(path)) as other:
        assert other.read([ITEM])[ITEM].verdict(REGIONS) is Verdict.LOCKED


def test_full_by_sqlites_own_count_is_told(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        store._database.write(lambda connection: connection.exec_driver_sql("PRAGMA max_page_count = 1"))
        error = refusal(lambda: put_down(store, draft("big", "NEW", content={"x": "y" * 3_000_000})))
    assert isinstance(error, StoreUnavailable)
    assert "the disk is full" in error.message


def test_a_file_kept_busy_for_too_long_is_told(path: Path) -> None:
    with closing(SqliteStore(path, busy=0.05)) as store:
        put_down(store, draft("new", "NEW"))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            error = refusal(lambda: put_down(store, draft("lock", "PROCESSING", "new")))
            assert store.read([ITEM])[ITEM].verdict(REGIONS) is Verdict.READY
            other.execute("ROLLBACK")
        put_down(store, draft("lock", "PROCESSING", "new"))
    assert isinstance(error, StoreBusy)
    assert "kept busy by other processes" in error.message


def test_a_write_that_waits_for_others_asks_every_few_milliseconds(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's own pauses grow to 100 ms: who comes later is served first."""
    pauses: list[float] = []
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 50:
                other.execute("COMMIT")

        monkeypatch.setattr("time.sleep", pause)
        put_down(store, draft("new", "NEW"))
    assert len(pauses) == 50
    assert max(pauses) <= 0.005


def test_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE lakewright_schema SET version = 99")
    error = refusal(lambda: SqliteStore(path))
    assert isinstance(error, NotInstalled)
    assert "schema version 99" in error.message


FIRST_SCHEMA = """
DROP TABLE lakewright_items; DROP TABLE lakewright_standings;
CREATE TABLE lakewright_suspects (item_id TEXT PRIMARY KEY);
CREATE TRIGGER lakewright_update AFTER UPDATE ON lakewright_records
BEGIN INSERT OR IGNORE INTO lakewright_suspects (item_id) VALUES (OLD.item_id); END;
CREATE TABLE lakewright_items (item_id TEXT PRIMARY KEY, sequence INTEGER, state TEXT, fold TEXT);
CREATE INDEX lakewright_items_by_state ON lakewright_items (state, item_id);
CREATE TABLE lakewright_verdicts (application TEXT, verdict TEXT, item_id TEXT);
CREATE TABLE lakewright_tallies (application TEXT, verdict TEXT, number BIGINT);
UPDATE lakewright_schema SET version = 1
"""


def test_a_manifest_that_listed_items_by_verdict_lists_them_by_standing(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        ledger = ledger_of(store)
        ledger.discover([found("1"), found("2")])
        ledger.processed(claim(ledger, found("1").item_id), {})
        before = list(store.select(Query())), store.standings()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FIRST_SCHEMA)
    assert read_store({"path": str(path)}, lambda old: (list(old.select(Query())), old.standings())) == before
    with closing(SqliteStore(path)) as store:
        assert (list(store.select(Query())), store.standings()) == before
        assert list(fsck(store)) == []
    with closing(sqlite3.connect(path)) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert names.isdisjoint(f"lakewright_{name}" for name in ("verdicts", "tallies", "suspects", "update"))


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(SqliteStore(path)) as store:
        put_down(store, draft("new", "NEW"))
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FIRST_SCHEMA)
        before = list(connection.iterdump())

    def fail(connection: Connection) -> None:
        connection.execute(text("ALTER TABLE nowhere ADD COLUMN note TEXT"))

    with monkeypatch.context() as patched:
        patched.setattr(tables, "rebuild", fail)
        assert "nowhere" in refusal(lambda: SqliteStore(path)).message
    with closing(sqlite3.connect(path)) as connection:
        assert list(connection.iterdump()) == before
    with closing(SqliteStore(path)) as store:
        assert [record.record_id for record in store.records(ITEM)] == ["new"]


def test_no_question_or_lock_reads_a_table_from_end_to_end(store: SqliteStore) -> None:
    """What it costs must not grow with the manifest: `processing-manifest.md`, "Challenges" (Performance)."""
    ledger = ledger_of(store)
    ledger.discover(found(f"{number}") for number in range(20))
    statements: set[str] = set()

    def trace(note: Callable[[str], object] | None) -> None:
        for use in (store._database.read, store._database.write):
            use(lambda each: database._driver(each).set_trace_callback(note))

    trace(statements.add)
    ledger.processed(claim(ledger, found("1").item_id), {"watermarks": {"n": {"type": "long", "value": 1}}})
    ledger.skip(found("2").item_id, "x")
    with pytest.raises(ItemLocked):
        claim(ledger, claim(ledger, found("3").item_id).item_id)
    for query in (
        Query(verdicts=frozenset({Verdict.LOCKED})),
        Query(application=REGIONS, verdicts=frozenset({Verdict.READY})),
        Query(states=frozenset({State.SKIPPED})),
        Query(prefix="file:///lake/bronze/regions/1"),
    ):
        list(store.select(query))
    store.write(Write(puts=(Put("note", "x", {}),)))
    list(store.documents("note", prefix="x", is_newest_first=True))
    trace(None)
    plans = []
    with closing(sqlite3.connect(str(store._database.where))) as connection:
        for statement in statements:
            if statement.startswith(("SELECT", "UPDATE", "DELETE")):
                rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
                plans += [(row[3], statement) for row in rows]
    scans = {plan for plan, _ in plans if plan.startswith("SCAN") and "CONSTANT ROW" not in plan}
    assert {scan.split()[1] for scan in scans} == {"lakewright_standings"}
    assert len(plans) > 15


def test_an_interrupt_while_a_transaction_begins_leaves_none_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C as the lock that it waited for is had: the next write must not find a transaction open."""
    path = tmp_path / "manifest.db"
    with closing(SqliteStore(path)) as store, closing(SqliteStore(path, busy=0.1)) as other:

        def interrupted(driver: sqlite3.Connection, statement: str, _busy: float) -> None:
            driver.execute(statement)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(database, "_execute_when_free", interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.write(Write(puts=(Put("note", "x", {"n": 1}),)))

        other.write(Write(puts=(Put("note", "y", {"n": 1}),)))
        store.write(Write(puts=(Put("note", "x", {"n": 2}),)))
        assert store.document("note", "y") is not None


def test_a_store_goes_on_with_the_file_that_has_taken_the_place_of_a_damaged_one(
    path: Path, store: SqliteStore
) -> None:
    """Finding 13: a server's triggers stood still after the manifest was replaced as the error says."""
    put_down(store, draft("old", "NEW"))
    path.write_bytes(_scrambled(path.read_bytes()))
    path.rename(path.with_suffix(".damaged"))
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    gone = refusal(lambda: store.records(ITEM))
    assert isinstance(gone, StoreUnavailable)
    assert gone.message == f"the manifest {path} is gone"
    assert not path.exists()  # a look makes no new one

    with closing(SqliteStore(path)) as other:
        put_down(other, draft("new", "NEW"))
        assert [record.record_id for record in store.records(ITEM)] == ["new"]
        put_down(store, draft("lock", "PROCESSING", "new"))
        assert [record.record_id for record in other.records(ITEM)] == ["new", "lock"]


def test_a_store_creates_the_tables_of_an_empty_file_that_has_taken_its_place(
    path: Path, store: SqliteStore
) -> None:
    put_down(store, draft("old", "NEW"))
    path.rename(path.with_suffix(".damaged"))
    path.touch()
    assert store.records(ITEM) == ()
    put_down(store, draft("new", "NEW"))
    assert [record.record_id for record in store.records(ITEM)] == ["new"]


def test_a_store_reads_a_backup_that_was_copied_over_the_damaged_file(path: Path) -> None:
    with closing(SqliteStore(path)) as first:
        put_down(first, draft("new", "NEW"))
    good = path.read_bytes()
    with closing(SqliteStore(path)) as store:
        path.write_bytes(_truncated(good))
        assert isinstance(refusal(lambda: store.records(ITEM)), LakewrightError)
        path.write_bytes(good)
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
        assert [record.record_id for record in store.records(ITEM)] == ["new"]
