"""Reading a SQLite manifest without leaving a trace: no file is made, and no byte of any is changed.

An ordinary connection to a file with a write-ahead log makes two files beside it, and brings the schema and
the folds of hand-edited items up to date. Here the file is opened so that SQLite writes nothing, and what
would have to be brought up to date is, in a copy in memory.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TypeVar, cast

from sqlalchemy import Connection, create_engine, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from lakewright.errors import LakewrightError
from lakewright.stores.sql.backend import PATIENCE, Backend
from lakewright.stores.sql.schema import is_current, migrate, suspects
from lakewright.stores.sql.sqlite_database import sqlite_backend
from lakewright.stores.sql.store import SqlStore
from lakewright.stores.sql.tables import settle

__all__ = ["is_writable", "looking_store", "read_sqlite"]

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

    def reading() -> T:
        with _reading(path, clock) as backend:
            return ask(SqlStore(backend))

    return _undisturbed(path, reading)


def looking_store(path: Path, *, clock: Callable[[], datetime] = _utc_now) -> SqlStore:
    """Return the manifest of a file that this user can only read; it shows what others write meanwhile.

    Raises:
        StoreUnavailable, ManifestCorrupt, NotInstalled: It can't be read.
    """
    given = sqlite_backend(path, clock, BUSY)
    return SqlStore(_Looking(**{each.name: getattr(given, each.name) for each in fields(given)}))


def is_writable(path: Path) -> bool:
    """Return whether this user may write a file and what SQLite keeps beside it."""
    aside = [Path(f"{path}{ending}") for ending in _ASIDE]
    needed = aside if all(file.exists() for file in aside) else [path.parent]
    as_effective = os.access in os.supports_effective_ids
    return all(os.access(file, os.W_OK, effective_ids=as_effective) for file in (path, *needed))


@dataclass(frozen=True)
class _Looking(Backend):
    """A file that is read from what is opened anew whenever others have written."""

    _opened: list[tuple[object, ExitStack, Backend]] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def ask(self, work: Callable[[Connection], T], *, patience: float = PATIENCE) -> T:
        """Return what `work` returns."""
        path = Path(self.where)
        with self._lock:
            return _undisturbed(path, lambda: self._now(path).ask(work, patience=patience))

    def _now(self, path: Path) -> Backend:
        """Return the file as it is now."""
        stamp = (_stamp(path), *(Path(f"{path}{ending}").exists() for ending in _ASIDE))
        if not self._opened or self._opened[0][0] != stamp:
            self._let_go()
            with ExitStack() as opening:
                backend = opening.enter_context(_reading(path, lambda: self.now(None)))
                self._opened.append((stamp, opening.pop_all(), backend))
        return self._opened[0][2]

    def _let_go(self) -> None:
        while self._opened:
            self._opened.pop()[1].close()

    def close(self) -> None:
        """Let go of connections and files."""
        self._let_go()
        super().close()


def _undisturbed(path: Path, read: Callable[[], T]) -> T:
    """Return what `read` finds, read again where the file changed meanwhile, but not for ever."""
    for _ in range(TURNS - 1):
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
def _reading(path: Path, clock: Callable[[], datetime]) -> Iterator[Backend]:
    with TemporaryDirectory(prefix="lakewright-") as aside, ExitStack() as opened:
        found = _backend(_address(path, Path(aside)), path, clock)
        opened.callback(found.close)
        try:
            if not _is_settled(found):
                found = _in_memory(found)
                opened.callback(found.close)
        except (sqlite3.Error, DBAPIError) as error:
            raise found.translate(error) from error
        yield found


def _address(path: Path, aside: Path) -> str:
    """Return the URI by which SQLite reads the file and its log, and writes neither them nor a third one."""
    log, index = (Path(f"{path}{ending}") for ending in _ASIDE)
    if index.exists() and log.exists():
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
    copied = replace(backend, engine=engine)
    copied.transact(lambda connection: _bring_up_to_date(connection, backend.where))
    return copied


def _bring_up_to_date(connection: Connection, where: str) -> None:
    migrate(connection, where)
    settle(connection)
