"""The store on a PostgreSQL server."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime

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
        super().__init__(_database(url))

    @classmethod
    def open_existing(cls, url: str) -> SqlStore | datetime:
        """Return the store, or the server's time if it has no tables of a manifest."""
        with ExitStack() as undo:
            database = _database(url)
            undo.callback(database.engine.dispose)
            moment = database.read(lambda c: None if is_created(c) else _now(c), patience=0)
            if moment is not None:
                return moment
            undo.pop_all()
        return SqlStore(database)


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


def _database(address: str) -> Database:
    """Return the server as a database, without connecting to it."""
    url = _parse(address)
    where = f"the manifest in PostgreSQL at {url.host or 'localhost'}, database {url.database or 'default'},"
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
    return Database(
        engine=engine,
        where=where,
        now=_now,
        has_server_clock=True,
        locks_rows=True,
        read_options={"isolation_level": "AUTOCOMMIT"},
        check=_refuse_replica,
        lock_schema=_lock_schema,
        driver_errors=psycopg.Error,
        collisions=psycopg.IntegrityError,
        is_transient=_is_transient,
        translate=lambda error: _translate(error, where),
    )


def _now(connection: Connection | None) -> datetime:
    if connection is None:
        raise ValueError("reading the server's time needs a connection")
    moment: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return moment.astimezone(UTC)


def _refuse_replica(connection: Connection) -> None:
    if connection.scalar(select(func.pg_is_in_recovery())):
        raise StoreUnavailable(
            "the manifest's server is a replica, whose answers lag behind the primary server's",
            remedy="Set `manifest: {url: …}` to the primary server.",
        )


def _lock_schema(connection: Connection) -> None:
    connection.execute(select(func.pg_advisory_xact_lock(SCHEMA_LOCK)))


def _is_transient(error: Exception) -> bool:
    """Return whether the cause is a lost connection, a starting server, a deadlock or a conflict.

    SQLSTATE classes: 08 connection exception, 40 transaction rollback, 57 operator intervention.
    """
    cause, state = _cause(error), _state(error)
    is_unanswered = isinstance(cause, psycopg.OperationalError) and not state
    return is_unanswered or state[:2] in {"08", "40", "57"}


def _translate(error: Exception, where: str) -> LakewrightError:
    state, cause = _state(error), _cause(error)
    first_line = login_reason(str(cause)) or str(cause).strip().partition("\n")[0]
    if state.startswith("42P") or state == "42703":
        return ManifestCorrupt(f"{where} lacks a part of its schema: {first_line}")
    return StoreUnavailable(
        f"{where} can't be used: {first_line}",
        remedy="Check that the server runs, and that `manifest: {url: …}` and the user's rights are correct.",
    )


def _cause(error: Exception) -> BaseException:
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def _state(error: Exception) -> str:
    return getattr(_cause(error), "sqlstate", None) or ""
