"""What tells one SQL database from another, as a value: everything else is the same code."""

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

__all__ = ["PATIENCE", "Backend", "Collision"]

log = logging.getLogger(__name__)

T = TypeVar("T")

PATIENCE = 5.0
"""Seconds in which a lost connection is made anew before the caller hears of it."""


class Collision(Exception):
    """Another transaction was quicker to insert the same key; nothing was written."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A database and its peculiarities.

    Attributes:
        engine: Begins transactions in which what was read stays true until the commit, if locked on reading.
        where: The database, for a person, without secrets.
        now: Asks the database for the time, or this machine where it gets no connection.
        has_own_clock: Whether the time has to be asked for.
        reading: Execution options of a connection that only reads, and so needs no transaction.
        check: Refuses a database that can't be the manifest.
        lock_schema: Keeps others from changing the schema until the transaction ends.
        driver_errors: What the driver raises where SQLAlchemy doesn't wrap it.
        collisions: Of these, what a transaction meets that is too late to insert a key.
        is_passing: Tells whether the same transaction may well succeed if tried again.
        translate: Turns a driver's error into one of ours.
    """

    engine: Engine
    where: str
    now: Callable[[Connection | None], datetime]
    has_own_clock: bool
    reading: Mapping[str, Any]
    check: Callable[[Connection], None]
    lock_schema: Callable[[Connection], None]
    driver_errors: type[Exception]
    collisions: type[Exception]
    is_passing: Callable[[Exception], bool]
    translate: Callable[[Exception], LakewrightError]

    def transact(self, work: Callable[[Connection], T], *, patience: float = PATIENCE) -> T:
        """Return what `work` returns in a transaction of its own, begun for writing.

        Raises:
            Collision: Another transaction was quicker to insert the same key.
        """
        return self._persist(lambda: self._in_transaction(work), patience)

    def ask(self, work: Callable[[Connection], T], *, patience: float = PATIENCE) -> T:
        """Return what `work`, which only reads, returns."""
        return self._persist(lambda: self._outside_transactions(work), patience)

    def close(self) -> None:
        """Let go of connections and files."""
        self.engine.dispose()

    def _in_transaction(self, work: Callable[[Connection], T]) -> T:
        with self.engine.begin() as connection:
            return work(connection)

    def _outside_transactions(self, work: Callable[[Connection], T]) -> T:
        with self.engine.connect().execution_options(**self.reading) as connection:
            return work(connection)

    def _persist(self, work: Callable[[], T], patience: float) -> T:
        deadline = time.monotonic() + patience
        pause = 0.02
        while True:
            try:
                return work()
            except (IntegrityError, self.collisions) as error:
                raise Collision from error
            except (DBAPIError, self.driver_errors) as error:
                if not self.is_passing(error) or time.monotonic() + pause > deadline:
                    raise self.translate(error) from error
                log.warning("%s: trying again after %s", self.where, error)
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
