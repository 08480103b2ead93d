"""A SQLite file as a database of the manifest.

The file uses a write-ahead log, so readers and the writer do not wait for each other. Every commit is synced
to disk. A transaction that writes takes the write lock when it begins, so what it has read cannot change.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, create_engine, event
from sqlalchemy.exc import DBAPIError

from lakewright.errors import LakewrightError, ManifestCorrupt, StoreUnavailable
from lakewright.stores.sql.database import Database

__all__ = ["sqlite_database"]

READ_ONLY = "lakewright_read_only"
"""The execution option of connections that only read: each statement is its own transaction."""


def sqlite_database(path: Path, clock: Callable[[], datetime], busy: float) -> Database:
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
    event.listen(engine, "begin", _begin)
    return Database(
        engine=engine,
        where=str(path),
        now=lambda _: clock(),
        has_server_clock=False,
        read_options={READ_ONLY: True},
        check=lambda _: None,
        lock_schema=lambda _: None,
        driver_errors=sqlite3.Error,
        collisions=sqlite3.IntegrityError,
        is_transient=lambda _: False,
        translate=lambda error: _translate(error, path),
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


def _begin(connection: Connection) -> None:
    if READ_ONLY not in connection.get_execution_options():
        # Through the driver: SQLAlchemy's own execution takes as long as the statement itself.
        driver: Any = connection.connection.driver_connection
        driver.execute("BEGIN IMMEDIATE")


def _translate(error: Exception, path: Path) -> LakewrightError:
    cause = error.orig if isinstance(error, DBAPIError) else error
    name = getattr(cause, "sqlite_errorname", "")
    for start, (message, remedy) in _FAULTS.items():
        if name.startswith(start):
            kind = ManifestCorrupt if start == "SQLITE_CORRUPT" else StoreUnavailable
            return kind(f"the manifest {path} {message} ({cause})", remedy=remedy)
    return StoreUnavailable(f"the manifest {path} can't be used: {cause}")


_FAULTS: Mapping[str, tuple[str, str]] = {
    "SQLITE_BUSY": ("is kept busy by other processes", "Run again once they have ended."),
    "SQLITE_READONLY": ("can't be written", "Give this user the right to write the file and its folder."),
    "SQLITE_PERM": ("can't be written", "Give this user the right to write the file and its folder."),
    "SQLITE_CANTOPEN": (
        "can't be opened",
        "Set `manifest: {path: …}` to a file that can be read and written.",
    ),
    "SQLITE_FULL": ("can't grow: the disk is full", "Free some space, then run again."),
    "SQLITE_IOERR": (
        "can't be read or written",
        "Check that the disk works and has free space, then run again.",
    ),
    "SQLITE_NOTADB": (
        "isn't a SQLite file",
        "Move the file away, or set `manifest: {path: …}` to another one.",
    ),
    "SQLITE_CORRUPT": ("is damaged", "Restore it from a backup, or import the last export into a new file."),
}
