"""A SQLite file as a database of the manifest.

The file uses a write-ahead log, so readers and the writer do not wait for each other. Every commit is synced
to disk. A transaction that writes takes the write lock when it begins, so what it has read cannot change.

Taking and ending a lock is two commits, so what surrounds a commit counts: connections stay open between
transactions, which are begun and ended through the driver.
"""

from __future__ import annotations

import random
import shlex
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeVar, cast

from sqlalchemy import URL, Connection, create_engine, event
from sqlalchemy.exc import DBAPIError

from lakewright.errors import LakewrightError, ManifestCorrupt, StoreUnavailable
from lakewright.stores.sql.database import Database

__all__ = ["SqliteDatabase", "sqlite_database"]

T = TypeVar("T")

PAUSE = (0.0005, 0.002)
"""Seconds between two attempts to get the write lock, from this range at random.

SQLite's own pauses grow to 100 ms, so that a process that came late can wait for seconds while others write.
"""

CHECKPOINT = 4_000
"""Pages of the write-ahead log after which it is copied to the file; SQLite's 1,000 are 60 locks."""


@dataclass(frozen=True)
class SqliteDatabase(Database):
    """A SQLite file; a statement outside a transaction is its own one.

    Attributes:
        busy: Seconds that a transaction waits for those of other processes.
    """

    busy: float
    _writing: list[Connection] = field(default_factory=list, init=False, repr=False)
    _reading: list[Connection] = field(default_factory=list, init=False, repr=False)

    def _in_transaction(self, work: Callable[[Connection], T]) -> T:
        with _taken(self._writing, self._open_writing) as connection:
            driver = _driver(connection)
            _begin(driver, self.busy)
            done = work(connection)
            driver.execute("COMMIT")
            return done

    def _without_transaction(self, work: Callable[[Connection], T]) -> T:
        with _taken(self._reading, self.engine.connect) as connection:
            return work(connection)

    def _open_writing(self) -> Connection:
        connection = self.engine.connect()
        _driver(connection).execute("PRAGMA busy_timeout = 0")  # `_begin` waits
        return connection

    def close(self) -> None:
        """Close connections and files."""
        for idle in (self._writing, self._reading):
            while idle:
                idle.pop().close()
        self.engine.dispose()


@contextmanager
def _taken(idle: list[Connection], connect: Callable[[], Connection]) -> Iterator[Connection]:
    """Yield an idle connection, or a new one; an error or interruption undoes what is not committed."""
    try:
        connection = idle.pop()
    except IndexError:
        connection = connect()
    try:
        yield connection
    except BaseException:
        _driver(connection).rollback()
        raise
    finally:
        if connection.in_transaction():
            connection.rollback()  # SQLAlchemy's own account, in which each of its statements begins one
        idle.append(connection)


def _driver(connection: Connection) -> sqlite3.Connection:
    return cast("sqlite3.Connection", connection.connection.driver_connection)


def sqlite_database(path: Path, clock: Callable[[], datetime], busy: float) -> SqliteDatabase:
    """Return the file as a database; its folder is created if it does not exist.

    Args:
        path: The file.
        clock: Returns the time, in UTC.
        busy: Seconds to wait for other processes' transactions.

    Raises:
        StoreUnavailable: The folder cannot be created.
    """
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
    return SqliteDatabase(
        engine=engine,
        where=str(path),
        now=lambda _: clock(),
        has_server_clock=False,
        locks_rows=False,
        read_options={},
        check=lambda _: None,
        lock_schema=lambda _: None,
        driver_errors=sqlite3.Error,
        collisions=sqlite3.IntegrityError,
        is_transient=lambda _: False,
        translate=lambda error: _translate(error, path),
        busy=busy,
    )


def _prepare(connection: sqlite3.Connection, busy: float) -> None:
    """Set up a new connection; from then on `_begin` alone begins transactions."""
    connection.isolation_level = None
    deadline = time.monotonic() + busy
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            # SQLite's busy timeout does not cover a change of the journal mode, so processes that open the
            # same new file at once retry here.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")


def _begin(driver: sqlite3.Connection, busy: float) -> None:
    """Begin a transaction that writes; wait for other processes' transactions.

    Raises:
        sqlite3.OperationalError: Others kept the file busy for too long.
    """
    deadline = time.monotonic() + busy
    while True:
        try:
            driver.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(*PAUSE))  # noqa: S311 - no secret


def _translate(error: Exception, path: Path) -> LakewrightError:
    cause = error.orig if isinstance(error, DBAPIError) else error
    name = getattr(cause, "sqlite_errorname", "")
    for start, (message, remedy) in _FAULTS.items():
        if name.startswith(start):
            kind = ManifestCorrupt if start == "SQLITE_CORRUPT" else StoreUnavailable
            return kind(
                f"the manifest {path} {message} ({cause})", remedy=remedy.format(path=shlex.quote(str(path)))
            )
    return StoreUnavailable(f"the manifest {path} can't be used: {cause}")


_REPLACEMENT = (
    "Restore it from a backup. Without one: `mv {path} {path}.damaged; rm -f {path}-wal {path}-shm`, "
    "`lakewright manifest import FILE` if there is a file of `manifest export`, then run the job. It records "
    "what the tables' commits name as processed, and applies none of it a second time."
)

_FAULTS: Mapping[str, tuple[str, str]] = {
    "SQLITE_BUSY": ("is kept busy by other processes", "Run again once they have ended."),
    "SQLITE_READONLY": ("can't be written", "Give this user the right to write the file and its folder."),
    "SQLITE_PERM": ("can't be written", "Give this user the right to write the file and its folder."),
    "SQLITE_CANTOPEN": (
        "can't be opened",
        "Set `manifest: {{path: …}}` to a file that can be read and written.",
    ),
    "SQLITE_FULL": ("can't grow: the disk is full", "Free some space, then run again."),
    "SQLITE_IOERR": (
        "can't be read or written",
        "Check that the disk works and has free space, then run again.",
    ),
    "SQLITE_NOTADB": (
        "isn't a SQLite file",
        "If it never was the manifest, set `manifest: {{path: …}}` to another file. If it was: "
        + _REPLACEMENT,
    ),
    "SQLITE_CORRUPT": ("is damaged", _REPLACEMENT),
}
