"""The store on a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any, ClassVar

import psycopg
from sqlalchemy import URL, Connection, create_engine, func, make_url, select
from sqlalchemy.exc import ArgumentError, DBAPIError

from lakewright.errors import LakewrightError, ManifestCorrupt, SpecError, StoreUnavailable
from lakewright.stores.postgres.reasons import login_reason
from lakewright.stores.sql.database import Database
from lakewright.stores.sql.schema import is_created
from lakewright.stores.sql.store import SqlStore

SCHEMA_LOCK = 0x1A4E_0001
"""Key of the advisory lock that a process holds while it creates or migrates the schema."""


class PostgresStore(SqlStore):
    """A manifest on a PostgreSQL server.

    Args:
        url: `postgresql://user@host:port/database`; libpq's environment variables supply what it leaves out.
    """

    def __init__(self, url: str) -> None:
        super().__init__(PostgresDatabase(url))

    @classmethod
    def open_existing(cls, url: str) -> SqlStore | datetime:
        """Return the store, or the server's time if it has no tables of a manifest."""
        with ExitStack() as undo:
            database = PostgresDatabase(url)
            undo.callback(database.close)
            moment = database.read(lambda c: None if is_created(c) else database.now(c), patience=0)
            if moment is not None:
                return moment
            undo.pop_all()
        return SqlStore(database)


class PostgresDatabase(Database):
    """A server as a database; nothing connects to it yet.

    Args:
        address: The URL as a project gives it.
    """

    locks_rows = True
    read_options: ClassVar[Mapping[str, Any]] = {"isolation_level": "AUTOCOMMIT"}
    driver_errors = psycopg.Error
    collisions = psycopg.IntegrityError

    def __init__(self, address: str) -> None:
        url = _parse(address)
        engine = create_engine(
            url,
            # Rows that are read for writing are locked, so a stricter level would only add failures to retry.
            isolation_level="READ COMMITTED",
            connect_args={"connect_timeout": 5, "application_name": "lakewright"},
            hide_parameters=True,
            # Unlimited, so that a heartbeat never waits for a connection that a worker holds.
            max_overflow=-1,
            # A restart of the server leaves dead connections in the pool.
            pool_pre_ping=True,
        )
        place = f"{url.host or 'localhost'}, database {url.database or 'default'},"
        super().__init__(engine, f"the manifest in PostgreSQL at {place}")

    def now(self, connection: Connection | None = None) -> datetime:
        """Return the server's time."""
        if connection is None:
            return self.read(self.now)
        moment: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
        return moment.astimezone(UTC)

    def check(self, connection: Connection) -> None:
        """Raise an error if the server is a replica."""
        if connection.scalar(select(func.pg_is_in_recovery())):
            raise StoreUnavailable(
                "the manifest's server is a replica, whose answers lag behind the primary server's",
                remedy="Set `manifest: {url: …}` to the primary server.",
            )

    def lock_schema(self, connection: Connection) -> None:
        """Keep other processes from changing the schema until the transaction ends."""
        connection.execute(select(func.pg_advisory_xact_lock(SCHEMA_LOCK)))

    def is_transient(self, error: Exception) -> bool:
        """Return whether the cause is a lost connection, a starting server, a deadlock or a conflict.

        SQLSTATE classes: 08 connection exception, 40 transaction rollback, 57 operator intervention.
        """
        cause, state = _cause(error), _state(error)
        is_unanswered = isinstance(cause, psycopg.OperationalError) and not state
        return is_unanswered or state[:2] in {"08", "40", "57"}

    def translate(self, error: Exception) -> LakewrightError:
        """Return one of Lakewright's errors for a driver's."""
        state, cause = _state(error), _cause(error)
        first_line = login_reason(str(cause)) or str(cause).strip().partition("\n")[0]
        if state.startswith("42P") or state == "42703":
            return ManifestCorrupt(f"{self.where} lacks a part of its schema: {first_line}")
        return StoreUnavailable(
            f"{self.where} can't be used: {first_line}",
            remedy="Check that the server runs, and that `manifest: {url: …}` and the user's rights are "
            "correct.",
        )


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise SpecError.of(
            "the manifest's url can't be read", remedy="Write `postgresql://user@host:port/database`."
        ) from error
    if parsed.get_backend_name() not in {"postgres", "postgresql"}:
        raise SpecError.of(
            f"the manifest's url is one of {parsed.get_backend_name()}",
            remedy="Write `postgresql://user@host:port/database`.",
        )
    return parsed.set(drivername="postgresql+psycopg")


def _cause(error: Exception) -> BaseException:
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def _state(error: Exception) -> str:
    return getattr(_cause(error), "sqlstate", None) or ""
