"""Reading a SQLite manifest without a trace: no file is created, and no byte of any file changes.

An ordinary connection to a file with a write-ahead log creates two files next to it. It also migrates the
schema. Here SQLite opens the file so that it writes nothing; if the schema is out of date, it is migrated in
a copy in memory.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TypeVar, cast

from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from lakewright.errors import LakewrightError
from lakewright.stores.backend import may_write
from lakewright.stores.sql.database import PATIENCE, Database
from lakewright.stores.sql.schema import VERSION, version_of
from lakewright.stores.sql.store import SqlStore
from lakewright.stores.sql.tables import migrate
from lakewright.stores.sqlite.database import SqliteDatabase

T = TypeVar("T")

BUSY_SECONDS = 5.0
"""How long a read waits for a process that keeps the file locked."""

LOG, INDEX = "-wal", "-shm"
"""Endings of the two files that SQLite keeps next to a file with a write-ahead log."""

MOST_READS = 3
"""Maximum number of reads while other processes write."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


def read_only_store(path: Path, *, clock: Callable[[], datetime] = _utc_now) -> SqlStore:
    """Return the store in a file that this user can only read; it shows what other processes write meanwhile.

    Raises:
        StoreUnavailable, ManifestCorrupt, NotInstalled: The manifest cannot be read.
    """
    return SqlStore(_ReadOnlyDatabase(path, clock, BUSY_SECONDS))


def is_writable(path: Path) -> bool:
    """Return whether this user may write a file and the files that SQLite keeps next to it."""
    beside = [Path(f"{path}{ending}") for ending in (LOG, INDEX)]
    needed = beside if all(file.exists() for file in beside) else [path.parent]
    return may_write(path, *needed)


class _ReadOnlyDatabase(SqliteDatabase):
    """A file that is reopened for reading whenever another process has written to it."""

    def __init__(self, path: Path, clock: Callable[[], datetime], busy: float) -> None:
        super().__init__(path, clock, busy)
        self._open: list[tuple[object, ExitStack, Database]] = []
        self._lock = Lock()

    def read(self, work: Callable[[Connection], T], *, patience: float = PATIENCE) -> T:
        """Return the result of `work`."""
        with self._lock:
            return _repeat_if_changed(self.path, lambda: self._current().read(work, patience=patience))

    def _current(self) -> Database:
        """Return the database for the present content of the file."""
        path = self.path
        stamp = (_stamp(path), *(Path(f"{path}{ending}").exists() for ending in (LOG, INDEX)))
        if not self._open or self._open[0][0] != stamp:
            self._close_file()
            with ExitStack() as opening:
                database = opening.enter_context(_opened(path, self._clock))
                self._open.append((stamp, opening.pop_all(), database))
        return self._open[0][2]

    def _close_file(self) -> None:
        while self._open:
            self._open.pop()[1].close()

    def close(self) -> None:
        """Close connections and files."""
        self._close_file()
        super().close()


def _repeat_if_changed(path: Path, read: Callable[[], T]) -> T:
    """Return the result of `read`, repeated if the file changed meanwhile, at most `MOST_READS` times."""
    for _ in range(MOST_READS - 1):
        before = _stamp(path)
        try:
            found = read()
        except LakewrightError:
            if _stamp(path) == before:
                raise
        else:
            if _stamp(path) == before:
                return found
    return read()


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return (found.st_ino, found.st_size, found.st_mtime_ns)


@contextmanager
def _opened(path: Path, clock: Callable[[], datetime]) -> Iterator[Database]:
    with TemporaryDirectory(prefix="lakewright-") as folder, ExitStack() as opened:
        address = _address(path, Path(folder))
        found = _database(path, clock, lambda: _connected(address))
        opened.callback(found.close)
        try:
            if not found.read(lambda connection: version_of(connection) == VERSION):
                found = _in_memory(found, clock)
                opened.callback(found.close)
        except (sqlite3.Error, DBAPIError) as error:
            raise found.translate(error) from error
        yield found


def _address(path: Path, folder: Path) -> str:
    """Return the URI by which SQLite reads the file and its log without writing any file next to them."""
    log, index = (Path(f"{path}{ending}") for ending in (LOG, INDEX))
    if index.exists() and log.exists():
        return f"{path.absolute().as_uri()}?mode=ro&readonly_shm=1"
    if not log.exists() or log.stat().st_size == 0:
        return f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    # SQLite can read a log without its index only where it may create the index: in a temporary copy.
    copy = folder / "manifest.db"
    for ending in ("", LOG):
        shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
    return copy.as_uri()


def _database(
    path: Path, clock: Callable[[], datetime], connect: Callable[[], sqlite3.Connection]
) -> SqliteDatabase:
    engine = create_engine("sqlite://", creator=connect, poolclass=StaticPool, hide_parameters=True)
    return SqliteDatabase(path, clock, BUSY_SECONDS, engine=engine)


def _connected(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, check_same_thread=False)
    connection.isolation_level = None
    return connection


def _in_memory(database: SqliteDatabase, clock: Callable[[], datetime]) -> SqliteDatabase:
    """Return an up-to-date copy of a database in memory."""
    copy = _connected("file::memory:")
    with database.engine.connect() as source:
        cast("sqlite3.Connection", source.connection.driver_connection).backup(copy)
    copied = _database(database.path, clock, lambda: copy)
    copied.write(lambda connection: migrate(connection, database.where))
    return copied
