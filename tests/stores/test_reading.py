"""A SQLite manifest that is only read is left as it was, to the byte, whatever state it is in."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from tests.records import claim, draft, found, ledger_of, put_down

from lakewright.errors import LakewrightError, ManifestCorrupt, NotInstalled, StoreUnavailable
from lakewright.manifest.store import Query, Store
from lakewright.manifest.verdict import Verdict
from lakewright.stores.registry import open_lazily, read_store
from lakewright.stores.sqlite.database import SqliteStore
from lakewright.stores.sqlite.readonly import read_only_store

T = TypeVar("T")


def made(path: Path) -> SqliteStore:
    """A manifest with one processed item and one new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    store = SqliteStore(path)
    ledger = ledger_of(store)
    ledger.discover([found(), found("2022-02-01.csv")])
    ledger.processed(claim(ledger), {})
    return store


def closed(path: Path) -> None:
    made(path).close()


def killed(path: Path) -> None:
    """As a process leaves it that is killed: the last transactions are in the log alone."""
    with closing(made(path.parent / "live" / "manifest.db")) as store:
        for file in Path(store._database.where).parent.iterdir():
            shutil.copy(file, path.parent / file.name)


def log_without_index(path: Path) -> None:
    killed(path)
    Path(f"{path}-shm").unlink()


def read_unchanged(path: Path, ask: Callable[[Store], T]) -> T:
    return read_store({"path": str(path)}, ask)


STATES = [closed, killed, log_without_index]


def bytes_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(file.relative_to(folder)): (file.read_bytes(), file.stat().st_mtime_ns)
        for file in folder.rglob("*")
        if file.is_file()
    }


def verdicts(store: Store) -> dict[str, set[Verdict]]:
    return {item.item_id[-14:]: set(item.verdicts().values()) for item in store.select(Query())}


@pytest.mark.parametrize("leave", STATES)
def test_reading_finds_what_was_written_and_changes_no_byte(
    leave: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "manifest.db"
    leave(path)
    before = bytes_of(tmp_path)

    seen = read_unchanged(path, verdicts)

    assert seen == {"2022-01-01.csv": {Verdict.PROCESSED}, "2022-02-01.csv": {Verdict.READY}}
    assert bytes_of(tmp_path) == before


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that others than root may look into."""
    made = Path(tempfile.mkdtemp(prefix="lakewright-"))
    yield made
    shutil.rmtree(made)


@contextmanager
def only_readable(folder: Path) -> Iterator[None]:
    """A folder and its files as a user has them who may only look."""
    rights = {place: place.stat().st_mode for place in (folder, *folder.rglob("*"))}
    for place, mode in rights.items():
        place.chmod(mode & 0o555 | 0o444)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65_534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        for place, mode in rights.items():
            place.chmod(mode)


@pytest.mark.parametrize("leave", STATES)
def test_who_may_not_write_can_look_and_changes_no_byte(leave: Callable[[Path], None], folder: Path) -> None:
    path = folder / "manifest.db"
    leave(path)
    shutil.rmtree(folder / "live", ignore_errors=True)
    folder.chmod(0o755)
    before = bytes_of(folder)

    with only_readable(folder), closing(open_lazily({"path": str(path)})) as store:
        assert verdicts(store) == {"2022-01-01.csv": {Verdict.PROCESSED}, "2022-02-01.csv": {Verdict.READY}}
        assert len(list(store.history())) == 4
        with pytest.raises(StoreUnavailable, match=r"can't be (written|opened)"):
            put_down(store, draft("other", "NEW", item="file:///other"))
        with pytest.raises(StoreUnavailable, match=r"can't be (written|opened)"):
            store.rebuild()

    assert bytes_of(folder) == before


def test_who_may_not_write_sees_what_others_write_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "manifest.db"
    closed(path)
    with closing(read_only_store(path)) as store:
        assert len(list(store.select(Query()))) == 2
        with closing(SqliteStore(path)) as writer:
            for number in range(3):
                put_down(writer, draft(f"new-{number}", "NEW", item=f"file:///{number}"))
                assert len(list(store.select(Query()))) == 3 + number
        assert len(list(store.select(Query()))) == 5


def test_an_empty_file_is_an_empty_manifest_and_stays_empty(tmp_path: Path) -> None:
    (tmp_path / "manifest.db").touch()
    assert read_unchanged(tmp_path / "manifest.db", verdicts) == {}
    assert [file.stat().st_size for file in tmp_path.iterdir()] == [0]


def test_where_there_is_no_file_none_is_made(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "manifest.db"
    assert read_store({"kind": "sqlite", "path": str(path), "lease": "60s"}, verdicts) == {}
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_writes_meanwhile_is_neither_held_up_nor_disturbed(tmp_path: Path) -> None:
    path = tmp_path / "manifest.db"
    with closing(made(path)) as writer:

        def ask(store: Store) -> int:
            before = len(list(store.select(Query())))
            put_down(writer, draft("other", "NEW", item="file:///other"))
            return before

        assert read_unchanged(path, ask) == 2
        assert len(list(writer.select(Query()))) == 3


@pytest.mark.parametrize(
    ("content", "error"),
    [(b"this is no database" * 100, StoreUnavailable), (b"\x00" * 5_000, LakewrightError)],
)
def test_what_is_no_manifest_is_refused(content: bytes, error: type[LakewrightError], tmp_path: Path) -> None:
    (tmp_path / "manifest.db").write_bytes(content)
    with pytest.raises(error):
        read_unchanged(tmp_path / "manifest.db", verdicts)


def test_a_newer_manifest_and_a_damaged_one_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "manifest.db"
    closed(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE lakewright_schema SET version = 99")
        connection.commit()
    with pytest.raises(NotInstalled, match="version 99"):
        read_unchanged(path, verdicts)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 3)
    with pytest.raises((ManifestCorrupt, StoreUnavailable)):
        read_unchanged(path, verdicts)
