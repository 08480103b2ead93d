"""A SQLite file as a database of the manifest.

The file uses a write-ahead log, so readers and the writer do not wait for each other. Every commit is synced
to disk. A transaction that writes takes the write lock when it begins, so what it has read cannot change.

Taking and ending a lock is two commits, so what surrounds a commit counts: connections stay open between
transactions, which are begun and ended through the driver.

A process that runs for long, such as a server, goes on with the file that is there: if it was replaced, as
after damage, connections to the former one are closed.
"""

from __future__ import annotations

import random
import shlex
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias, TypeVar, cast

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from lakewright.errors import LakewrightError, ManifestCorrupt, StoreBusy, StoreUnavailable
from lakewright.errors.phrase import Command, Phrase, ShellLine
from lakewright.stores.sql.database import Database
from lakewright.stores.sql.store import SqlStore
from lakewright.stores.sql.tables import migrate

T = TypeVar("T")

_File: TypeAlias = tuple[int, int]
"""The device and inode of a file."""

_FILE = "lakewright.file"
"""The entry of a connection that says which file it has opened."""

_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB")

PAUSE = (0.0005, 0.002)
"""Seconds between two attempts to get the write lock, from this range at random.

SQLite's own pauses grow to 100 ms, so that a process that came late can wait for seconds while others write.
"""

CHECKPOINT = 4_000
"""Pages of the write-ahead log after which it is copied to the file; SQLite's 1,000 are 60 locks."""


class SqliteDatabase(Database):
    """A SQLite file; its folder is created if it does not exist.

    A statement outside a transaction is its own one.

    Args:
        path: The file.
        clock: Returns the time, in UTC.
        busy: Seconds that a transaction waits for those of other processes.
        engine: Connections to what is read instead of the file; by default those to the file.

    Raises:
        StoreUnavailable: The folder cannot be created.
    """

    driver_errors = sqlite3.Error
    collisions = sqlite3.IntegrityError

    def __init__(
        self, path: Path, clock: Callable[[], datetime], busy: float, *, engine: Engine | None = None
    ) -> None:
        super().__init__(engine or _engine(path, busy), str(path))
        self.path = path
        self.busy = busy
        self._clock = clock
        self._files: list[_File] = []
        self._writing: list[Connection] = []
        self._reading: list[Connection] = []

    def now(self, _connection: Connection | None = None) -> datetime:
        """Return the time."""
        return self._clock()

    def translate(self, error: Exception) -> LakewrightError:
        """Return one of Lakewright's errors for a driver's."""
        cause = error.orig if isinstance(error, DBAPIError) else error
        name = getattr(cause, "sqlite_errorname", "")
        for start, (message, remedy) in _FAULTS.items():
            if name.startswith(start):
                kind, advice = _KINDS.get(start, StoreUnavailable), remedy(shlex.quote(self.where))
                return kind(f"the manifest {self.where} {message} ({cause})", remedy=advice)
        return StoreUnavailable(f"the manifest {self.where} can't be used: {cause}")

    def _in_transaction(self, work: Callable[[Connection], T]) -> T:
        with self._taken(self._writing) as connection:
            driver = _driver(connection)
            _execute_when_free(driver, "BEGIN IMMEDIATE", self.busy)
            done = work(connection)
            driver.execute("COMMIT")
            return done

    def _without_transaction(self, work: Callable[[Connection], T]) -> T:
        with self._taken(self._reading) as connection:
            return work(connection)

    def close(self) -> None:
        """Close connections and files."""
        self._close_idle()
        self.engine.dispose()

    def _close_idle(self) -> None:
        for idle in (self._writing, self._reading):
            while idle:
                _close(idle.pop())

    @contextmanager
    def _taken(self, idle: list[Connection]) -> Iterator[Connection]:
        """Yield an idle connection, or a new one; an error or interruption undoes what is not committed."""
        connection = self._idle(idle)
        if connection is None:
            connection = self._connect()
            if idle is self._writing:
                _driver(connection).execute("PRAGMA busy_timeout = 0")  # `_execute_when_free` waits
        try:
            yield connection
        except BaseException as error:
            _driver(connection).rollback()
            if _is_damage(error):
                # Somebody may put another file in its place, with the same inode.
                _close(connection)
                self._close_idle()
            raise
        finally:
            if connection.in_transaction():
                connection.rollback()  # SQLAlchemy's own account, in which each of its statements begins one
            if not connection.closed:
                idle.append(connection)

    def _idle(self, idle: list[Connection]) -> Connection | None:
        """Return an idle connection to the file that is there; others are closed."""
        present = _file_at(self.path)
        while True:
            try:
                connection = idle.pop()
            except IndexError:
                return None
            if connection.info.get(_FILE) == present:
                return connection
            _close(connection)

    def _connect(self) -> Connection:
        """Return a new connection; a file that has taken the place of a former one gets its tables.

        Raises:
            StoreUnavailable: The file that was used before is gone.
        """
        if self._files and _file_at(self.path) is None:
            raise StoreUnavailable(
                f"the manifest {self.path} is gone",
                remedy="Bring the file back. If it was moved away because it was damaged, run the job, "
                "which makes a new one.",
            )
        connection = self.engine.connect()
        connection.info[_FILE] = present = _file_at(self.path)
        if present is not None and present not in self._files:
            if self._files:
                self._create_tables(connection)
            self._files[:] = [present]
        return connection

    def _create_tables(self, connection: Connection) -> None:
        driver = _driver(connection)
        _execute_when_free(driver, "BEGIN IMMEDIATE", self.busy)
        try:
            migrate(connection, self.where)
            driver.execute("COMMIT")
        finally:
            driver.rollback()
            connection.rollback()


def _file_at(path: Path) -> _File | None:
    """Return what identifies the file at a path; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _close(connection: Connection) -> None:
    connection.invalidate()  # the pool must not hand it out again
    connection.close()


def _is_damage(error: BaseException) -> bool:
    cause = error.orig if isinstance(error, DBAPIError) else error
    return getattr(cause, "sqlite_errorname", "").startswith(_DAMAGE)


def _driver(connection: Connection) -> sqlite3.Connection:
    return cast("sqlite3.Connection", connection.connection.driver_connection)


def _engine(path: Path, busy: float) -> Engine:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(
            f"the folder of the manifest {path} can't be created: {error.strerror}",
            remedy="Set `manifest: {path: …}` to a place that can be written.",
        ) from error
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"timeout": busy, "check_same_thread": False},
        hide_parameters=True,
        # Unlimited, so that a heartbeat never waits for a connection that a worker holds.
        max_overflow=-1,
    )
    event.listen(engine, "connect", lambda connection, _: _prepare(connection, busy))
    return engine


def _prepare(connection: sqlite3.Connection, busy: float) -> None:
    """Set up a new connection; from then on transactions begin explicitly."""
    connection.isolation_level = None
    # SQLite's busy timeout does not cover a change of the journal mode, which several may make at once.
    _execute_when_free(connection, "PRAGMA journal_mode = WAL", busy)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")


def _execute_when_free(driver: sqlite3.Connection, statement: str, busy: float) -> None:
    """Execute a statement that locks the file, once other processes' transactions have ended.

    Raises:
        sqlite3.OperationalError: Others kept the file busy for too long.
    """
    deadline = time.monotonic() + busy
    while True:
        try:
            driver.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(*PAUSE))  # noqa: S311 - no secret


_KINDS = {"SQLITE_CORRUPT": ManifestCorrupt, "SQLITE_BUSY": StoreBusy}


def _replacement(path: str) -> str:
    return Phrase(
        "Restore it from a backup. Without one: ",
        ShellLine(f"mv {path} {path}.damaged; rm -f {path}-wal {path}-shm"),
        ", ",
        Command("manifest", "import", "FILE"),
        " if there is a file of `manifest export`, then run the job. It records what the tables' commits "
        "name as processed, and applies none of it a second time.",
    )


def _rights(path: str) -> str:
    return (
        f"Give this user the right to write the file, its folder, and {path}-wal and {path}-shm if they are "
        "there: SQLite makes them with the rights that the file has at that moment."
    )


def _is_other(path: str) -> str:
    other = "If it never was the manifest, set `manifest: {path: …}` to another file. If it was: "
    return Phrase(other, _replacement(path))


_FAULTS: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "SQLITE_BUSY": ("is kept busy by other processes", lambda _: "Run again once they have ended."),
    "SQLITE_READONLY": ("can't be written", _rights),
    "SQLITE_PERM": ("can't be written", _rights),
    "SQLITE_CANTOPEN": (
        "can't be opened",
        lambda _: "Set `manifest: {path: …}` to a file that can be read and written.",
    ),
    "SQLITE_FULL": ("can't grow: the disk is full", lambda _: "Free some space, then run again."),
    "SQLITE_IOERR": (
        "can't be read or written",
        lambda _: "Check that the disk works and has free space, then run again.",
    ),
    "SQLITE_NOTADB": ("isn't a SQLite file", _is_other),
    "SQLITE_CORRUPT": ("is damaged", _replacement),
}


BUSY_SECONDS = 30.0
"""How long a statement waits for other processes' transactions."""


class SqliteStore(SqlStore):
    """A manifest in a file of this machine.

    Args:
        path: The file; it is created, with its folder, if it does not exist.
        clock: Returns the store's time, in UTC.
        busy: Seconds to wait for other processes' transactions.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        busy: float = BUSY_SECONDS,
    ) -> None:
        super().__init__(SqliteDatabase(Path(path), clock, busy))
