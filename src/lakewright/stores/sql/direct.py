"""Statements that run many times for each lock, past what SQLAlchemy does at each execution.

Each is compiled once for a database and then given to its driver: a lock takes two dozen of them, and
whatever is done at each of them counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.sql import ClauseElement

__all__ = ["Statement"]


class Statement:
    """A statement whose parameters have names.

    Args:
        clause: As SQLAlchemy writes it; without lists of a length that varies.
    """

    def __init__(self, clause: ClauseElement) -> None:
        self._clause = clause
        self._compiled: dict[str, tuple[str, Sequence[str] | None]] = {}

    def rows(self, connection: Connection, **parameters: Any) -> list[Any]:
        """Return what a query finds, as the driver has it."""
        text, order = self._for(connection)
        cursor = connection.connection.cursor()
        try:
            cursor.execute(text, _arguments(parameters, order))
            return list(cursor.fetchall())
        finally:
            cursor.close()

    def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int:
        """Execute for each of some rows, and return how many rows of the table the last one concerned."""
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
