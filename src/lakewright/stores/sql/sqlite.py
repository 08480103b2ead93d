"""The manifest in a SQLite file: the default back end, which needs no server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lakewright.stores.sql.sqlite_database import sqlite_backend
from lakewright.stores.sql.sqlite_readonly import is_writable, looking_store
from lakewright.stores.sql.store import SqlStore

__all__ = ["SqliteStore"]

DEFAULT_PATH = ".lakewright/manifest.db"

BUSY = 30.0
"""Seconds to wait for other processes' transactions."""


class SqliteStore(SqlStore):
    """A manifest in a file of this machine.

    Args:
        path: The file; made, with its folder, where there is none.
        clock: Gives the store's time, in UTC.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        busy: float = BUSY,
    ) -> None:
        super().__init__(sqlite_backend(Path(path), clock, busy))

    @classmethod
    def open(cls, settings: Mapping[str, Any]) -> SqliteStore:
        """Return the store in the file that `path` names."""
        return cls(cls.place(settings))

    @classmethod
    def look(cls, settings: Mapping[str, Any]) -> SqlStore | datetime:
        """Return the store, only to be read where it can't be written; or the time without such a file."""
        place = cls.place(settings)
        if not place.exists():
            return datetime.now(UTC)
        return cls.open(settings) if is_writable(place) else looking_store(place)

    @classmethod
    def place(cls, settings: Mapping[str, Any]) -> Path:
        """Return the file that `path` names."""
        return Path(str(settings.get("path", DEFAULT_PATH)))
