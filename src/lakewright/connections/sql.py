"""Databases reached by a Python driver, without a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lakewright.connections.database import Check, accept
from lakewright.errors import DatabaseUnavailable, LakewrightError, TargetError
from lakewright.stores.postgres.reasons import login_reason

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine
    from sqlalchemy.exc import DBAPIError


_PASSING = ("08", "40", "53", "57")
"""Classes of SQLSTATE after which a retry may succeed: no connection, rolled back, busy, shut down."""


class SqlDatabase:
    """A database with a connection pool.

    Attributes:
        place: Its name in messages.
    """

    def __init__(self, url: URL, place: str) -> None:
        self.place = place
        self._engine = _engine(url)

    def query(self, sql: str, most: int | None = None) -> list[tuple[Any, ...]]:
        """Return at most `most` rows of a query."""
        from sqlalchemy.exc import DBAPIError

        try:
            with self._engine.connect() as connection:
                found = _executed(connection, sql)
                return [tuple(row) for row in (found.all() if most is None else found.fetchmany(most))]
        except DBAPIError as error:
            raise _failure(self.place, error) from error

    def run(self, statements: Sequence[str], *, is_atomic: bool = True, check: Check = accept) -> list[int]:
        """Run statements in one transaction, or each in its own."""
        from sqlalchemy.exc import DBAPIError

        engine = self._engine if is_atomic else self._engine.execution_options(isolation_level="AUTOCOMMIT")
        try:
            with engine.begin() as connection:
                changed = [_executed(connection, statement).rowcount for statement in statements]
                check(changed)
                return changed
        except DBAPIError as error:
            raise _failure(self.place, error) from error

    def close(self) -> None:
        """Close the connections of the pool."""
        self._engine.dispose()


def failure(place: str, state: str | None, message: str) -> LakewrightError:
    """Return the error for a database's SQLSTATE; None means that the database did not answer."""
    said = login_reason(message) or " ".join(message.split())
    if state is None or state[:2] in _PASSING:
        return DatabaseUnavailable(
            f"{place}: {said}",
            remedy="Check that the database runs and can be reached from this machine, then try again.",
        )
    if state[:2] == "28":
        return TargetError(f"{place}: {said}", remedy="Check the connection's username and password.")
    return TargetError(f"{place}: {said}")


def _failure(place: str, error: DBAPIError) -> LakewrightError:
    state = getattr(error.orig, "sqlstate", None)
    return failure(place, state or _state_of_login(str(error.orig)), str(error.orig))


def _state_of_login(message: str) -> str | None:
    """Return the SQLSTATE of a rejected login, which libpq reports only as text."""
    refused = ("password authentication failed", "no password supplied", "pg_hba.conf")
    if any(text in message for text in refused):
        return "28000"
    return "3D000" if "does not exist" in message else None


def _engine(url: URL) -> Engine:
    from sqlalchemy import create_engine

    return create_engine(url, hide_parameters=True, max_overflow=-1, pool_pre_ping=True)


def _executed(connection: Connection, sql: str) -> Any:
    # Otherwise a percent sign would be read as a parameter.
    return connection.execution_options(no_parameters=True).exec_driver_sql(sql)
