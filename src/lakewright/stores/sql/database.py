"""A SQL database, described as a value; the store's code is the same for all databases."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError

from lakewright.errors import LakewrightError

log = logging.getLogger(__name__)

T = TypeVar("T")

PATIENCE = 5.0
"""Seconds during which work is retried after a transient failure, such as a lost connection."""


class Collision(Exception):
    """Another transaction inserted the same key first; nothing was written."""


@dataclass(frozen=True, slots=True)
class Database:
    """A database, and how it differs from others.

    Attributes:
        engine: Its transactions keep rows that were read with a lock unchanged until they commit.
        where: The database as messages name it, without secrets.
        now: Returns the database's time; it needs a connection only if `has_server_clock` is true.
        has_server_clock: Whether the time must be read over a connection.
        locks_rows: Whether a transaction that writes must lock the rows it reads; otherwise it excludes all
            other writers.
        read_options: Execution options of a connection that only reads, and so needs no transaction.
        check: Raises an error if the database cannot hold the manifest.
        lock_schema: Keeps other processes from changing the schema until the transaction ends.
        driver_errors: The driver's errors that SQLAlchemy does not wrap.
        collisions: Those driver errors that mean that another transaction inserted the same key first.
        is_transient: Returns whether the same work may succeed when it is repeated.
        translate: Converts a driver's error to one of Lakewright's.
    """

    engine: Engine
    where: str
    now: Callable[[Connection | None], datetime]
    has_server_clock: bool
    locks_rows: bool
    read_options: Mapping[str, Any]
    check: Callable[[Connection], None]
    lock_schema: Callable[[Connection], None]
    driver_errors: type[Exception]
    collisions: type[Exception]
    is_transient: Callable[[Exception], bool]
    translate: Callable[[Exception], LakewrightError]

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
        pause = 0.02
        while True:
            try:
                return work()
            except (IntegrityError, self.collisions) as error:
                raise Collision from error
            except (DBAPIError, self.driver_errors) as error:
                if not self.is_transient(error) or time.monotonic() + pause > deadline:
                    raise self.translate(error) from error
                log.warning("%s: retrying after %s", self.where, error)
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
