"""The store in a SQLite file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from lakewright.stores.sql.store import SqlStore
from lakewright.stores.sqlite.database import SqliteDatabase

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
