"""Reading a SQLite manifest without leaving a trace: no file is made, and no byte of any is changed.

An ordinary connection to a file with a write-ahead log makes two files beside it, and brings the schema and
the folds of hand-edited items up to date. Here the file is opened so that SQLite writes nothing, and what
would have to be brought up to date is, in a copy in memory.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar, cast

from sqlalchemy import create_engine, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from lakewright.errors import LakewrightError
from lakewright.stores.sql.backend import Backend
from lakewright.stores.sql.schema import is_current, suspects
from lakewright.stores.sql.sqlite import sqlite_backend
from lakewright.stores.sql.store import SqlStore

__all__ = ["read_sqlite"]

T = TypeVar("T")

BUSY = 5.0
"""Seconds to wait for what keeps the file from being read."""

_ASIDE = ("-wal", "-shm")

TURNS = 3
"""How often is asked at most while others write."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


def read_sqlite(path: Path, ask: Callable[[SqlStore], T], *, clock: Callable[[], datetime] = _utc_now) -> T:
    """Return what `ask` finds in the manifest of a file that exists.

    It is asked again where the file changed meanwhile, because one without log is read as if it never did.

    Raises:
        StoreUnavailable, ManifestCorrupt, NotInstalled: It can't be read.
    """
    for _ in range(TURNS - 1):
        before = _stamp(path)
        try:
            with _reading(path, clock) as store:
                found = ask(store)
        except LakewrightError:
            if _stamp(path) == before:
                raise
        else:
            if _stamp(path) == before:
                return found
    with _reading(path, clock) as store:
        return ask(store)


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return (found.st_ino, found.st_size, found.st_mtime_ns)


@contextmanager
def _reading(path: Path, clock: Callable[[], datetime]) -> Iterator[SqlStore]:
    with TemporaryDirectory(prefix="lakewright-") as aside:
        backend = _backend(_address(path, Path(aside)), path, clock)
        try:
            store = SqlStore(backend if _is_settled(backend) else _in_memory(backend))
        except (LakewrightError, sqlite3.Error, DBAPIError) as error:
            backend.engine.dispose()
            raise error if isinstance(error, LakewrightError) else backend.translate(error) from error
        try:
            yield store
        finally:
            store.close()
            backend.engine.dispose()


def _address(path: Path, aside: Path) -> str:
    """Return the URI by which SQLite reads the file and its log, and writes neither them nor a third one."""
    log, index = (Path(f"{path}{ending}") for ending in _ASIDE)
    if index.exists():
        return f"{path.absolute().as_uri()}?mode=ro&readonly_shm=1"
    if not log.exists() or log.stat().st_size == 0:
        return f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    # A log without its index can only be read where an index may be made.
    copy = aside / "manifest.db"
    for ending in ("", "-wal"):
        shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
    return copy.as_uri()


def _backend(address: str, path: Path, clock: Callable[[], datetime]) -> Backend:
    engine = create_engine(
        "sqlite://",
        creator=lambda: _connected(address),
        poolclass=StaticPool,
        hide_parameters=True,
    )
    return replace(sqlite_backend(path, clock, BUSY), engine=engine)


def _connected(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, timeout=BUSY, check_same_thread=False)
    connection.isolation_level = None
    return connection


def _is_settled(backend: Backend) -> bool:
    return backend.ask(
        lambda connection: (
            is_current(connection) and connection.execute(select(suspects).limit(1)).first() is None
        )
    )


def _in_memory(backend: Backend) -> Backend:
    copy = _connected("file::memory:")
    with backend.engine.connect() as source:
        cast("sqlite3.Connection", source.connection.driver_connection).backup(copy)
    engine = create_engine("sqlite://", creator=lambda: copy, poolclass=StaticPool, hide_parameters=True)
    return replace(backend, engine=engine)
