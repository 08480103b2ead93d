"""Statements that are compiled once and then passed to the driver, past SQLAlchemy.

Taking and ending one lock executes about two dozen of them, so the overhead of each one counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.sql import ClauseElement

__all__ = ["Statement"]


class Statement:
    """A statement with named parameters.

    Args:
        clause: The statement in SQLAlchemy's form; it must not contain lists of varying length.
    """

    def __init__(self, clause: ClauseElement) -> None:
        self._clause = clause
        self._compiled: dict[str, tuple[str, Sequence[str] | None]] = {}

    def rows(self, connection: Connection, **parameters: Any) -> list[Any]:
        """Return the rows that a query finds, as the driver returns them."""
        text, order = self._for(connection)
        cursor = connection.connection.cursor()
        try:
            cursor.execute(text, _arguments(parameters, order))
            return list(cursor.fetchall())
        finally:
            cursor.close()

    def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int:
        """Execute the statement for each row, and return the driver's count of affected table rows.

        For several rows, some drivers return only the count of the last one.
        """
        if not rows:
            return 0
        text, order = self._for(connection)
        cursor = connection.connection.cursor()
        try:
            if len(rows) == 1:
                cursor.execute(text, _arguments(rows[0], order))
            else:
                cursor.executemany(text, [_arguments(row, order) for row in rows])
            return int(cursor.rowcount)
        finally:
            cursor.close()

    def _for(self, connection: Connection) -> tuple[str, Sequence[str] | None]:
        dialect = connection.dialect
        found = self._compiled.get(dialect.name)
        if found is None:
            compiled: Any = self._clause.compile(dialect=dialect)
            found = (str(compiled), compiled.positiontup if compiled.positional else None)
            self._compiled[dialect.name] = found
        return found


def _arguments(row: Mapping[str, Any], order: Sequence[str] | None) -> Any:
    return row if order is None else tuple(row[name] for name in order)
