"""A SQL database; the store's code is the same for all databases."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError

from lakewright.errors import LakewrightError

log = logging.getLogger(__name__)

T = TypeVar("T")

PATIENCE = 5.0
"""Seconds during which work is retried after a transient failure, such as a lost connection."""

FIRST_PAUSE = 0.02
"""Seconds before the first retry; each further pause is twice as long, up to a second."""


class Collision(Exception):
    """Another transaction inserted the same key first; nothing was written."""


class Database(ABC):
    """A database, and how it differs from others.

    Attributes:
        locks_rows: Whether a transaction that writes must lock the rows it reads; otherwise it excludes all
            other writers.
        read_options: Execution options of a connection that only reads, and so needs no transaction.
        driver_errors: The driver's errors that SQLAlchemy does not wrap.
        collisions: Those driver errors that mean that another transaction inserted the same key first.

    Args:
        engine: Its transactions keep rows that were read with a lock unchanged until they commit.
        where: The database as messages name it, without secrets.
    """

    locks_rows: ClassVar[bool] = False
    read_options: ClassVar[Mapping[str, Any]] = {}
    driver_errors: ClassVar[type[Exception]]
    collisions: ClassVar[type[Exception]]

    def __init__(self, engine: Engine, where: str) -> None:
        self.engine = engine
        self.where = where

    @abstractmethod
    def now(self, connection: Connection | None = None) -> datetime:
        """Return the database's time, in UTC; a connection that is given need not be opened for it."""

    @abstractmethod
    def translate(self, error: Exception) -> LakewrightError:
        """Return one of Lakewright's errors for a driver's."""

    def check(self, connection: Connection) -> None:  # noqa: B027 - most need no check
        """Raise an error if the database cannot hold the manifest."""

    def lock_schema(self, connection: Connection) -> None:  # noqa: B027 - a writer may exclude others
        """Keep other processes from changing the schema until the transaction ends."""

    def is_transient(self, _error: Exception) -> bool:
        """Return whether the same work may succeed when it is repeated."""
        return False

    def write(self, work: Callable[[Connection], T], *, patience: float = PATIENCE) -> T:
        """Return the result of `work`, run in a transaction that is begun for writing.

        Raises:
            Collision: Another transaction inserted the same key first.
        """
        return self._retry(lambda: self._in_transaction(work), patience)

    def read(self, work: Callable[[Connection], T], *, patience: float = PATIENCE) -> T:
        """Return the result of `work`, which only reads."""
        return self._retry(lambda: self._without_transaction(work), patience)

    def close(self) -> None:
        """Close connections and files."""
        self.engine.dispose()

    def _in_transaction(self, work: Callable[[Connection], T]) -> T:
        with self.engine.begin() as connection:
            return work(connection)

    def _without_transaction(self, work: Callable[[Connection], T]) -> T:
        with self.engine.connect().execution_options(**self.read_options) as connection:
            return work(connection)

    def _retry(self, work: Callable[[], T], patience: float) -> T:
        deadline = time.monotonic() + patience
        pause = FIRST_PAUSE
        while True:
            try:
                return work()
            except (IntegrityError, self.collisions) as error:
                raise Collision from error
            except (DBAPIError, self.driver_errors) as error:
                failure = self.translate(error)
                if not self.is_transient(error) or time.monotonic() + pause > deadline:
                    raise failure from error
                level = logging.WARNING if pause == FIRST_PAUSE else logging.DEBUG
                log.log(level, "%s; it is tried again for up to %g s", failure.message, patience)
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
