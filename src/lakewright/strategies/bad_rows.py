"""Bad rows of a slice that are put aside, so that its other rows can be processed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.errors import BadRowsError
from lakewright.lake.paths import local_path
from lakewright.spec.words import counted
from lakewright.transform.casts import Misfit, misfit_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from lakewright.lake.table_state import TableState

__all__ = ["BadRow", "check_number", "collect_bad_rows", "message_with_rows", "rows_text", "type_hint"]

SHOWN = 10
"""Number of bad rows that an error names."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """One bad row.

    Attributes:
        reason: What is wrong with it.
        file: Its file: a local path or a URI.
        line: The number of its line, if it is known.
        key: Values of its business key; None if they are not known.
        record: Its text, or its columns as JSON.
    """

    reason: str
    file: str
    line: int | None = None
    key: Mapping[str, Any] | None = None
    record: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the row as the quarantine holds it."""
        return {
            "reason": self.reason,
            "file": self.file,
            "line": self.line,
            "key": None if self.key is None else dict(self.key),
            "record": self.record,
        }

    @property
    def text(self) -> str:
        """Where the row is, and what is wrong with it."""
        return f"{self.place}: {self.reason}"

    @property
    def place(self) -> str:
        """Where the row is: its line, its key, or the row itself."""
        name = self.file.rstrip("/").rpartition("/")[2]
        if self.line is not None:
            return f"{name}, line {self.line}"
        if self.key:
            return ", ".join(f"{column}={value}" for column, value in self.key.items())
        return f"{name}, {self.record[:100]}"


def collect_bad_rows(bad: DataFrame | None, most: int) -> tuple[BadRow, ...]:
    """Return the bad rows, found by one query; at most one more than `most`."""
    if bad is None:
        return ()
    rows = map(_bad_row, bad.limit(most + 1).collect())
    return tuple(sorted(rows, key=lambda row: (row.file, row.record)))


def check_number(rows: Sequence[BadRow], most: int, table: TableState) -> None:
    """Raise `BadRowsError` if there are more bad rows than may be put aside.

    Args:
        rows: The bad rows; at most one more than `most`.
        most: The number that may be put aside.
        table: The table as it is.
    """
    if len(rows) <= most:
        return
    remedy = "Correct the slice, or raise max_bad_rows; then resolve the item."
    misfit, hint = _common_misfit(rows), type_hint(rows, table)
    if misfit is not None and hint is not None:
        remedy = f"{hint} {misfit.remedy} Then resolve the item."
    raise BadRowsError(
        f"the slice has more than {counted(most, 'bad row')}, which is max_bad_rows: {rows_text(rows)}",
        remedy=remedy,
        details={"max_bad_rows": most, "rows": [row.as_json() for row in rows[:SHOWN]]},
    )


def type_hint(rows: Sequence[BadRow], table: TableState) -> str | None:
    """Return that the type of a column may be the cause, if several bad rows all misfit it; else None."""
    misfit = _common_misfit(rows)
    if misfit is None:
        return None
    column = table.column(misfit.column) if table.exists and not misfit.is_of_table else None
    whose = "which is that of the table" if misfit.is_of_table else "which is declared"
    also = "" if column is None else f"; the table has {column.type.ddl}"
    return f"Check the type of column {misfit.column!r}: no bad row fits {misfit.type}, {whose}{also}."


def _common_misfit(rows: Sequence[BadRow]) -> Misfit | None:
    """Return the misfit of several rows; None if they have different faults, or there is one row only."""
    found = {misfit_of(row.reason) for row in rows} if len(rows) > 1 else set()
    return found.pop() if len(found) == 1 else None


def rows_text(rows: Iterable[BadRow]) -> str:
    """Return the first bad rows in words.

    The number of further rows is not told, because only a few are looked for.
    """
    told = [row.text for row in rows]
    return "; ".join(told[:SHOWN]) + (" and more" if len(told) > SHOWN else "")


def message_with_rows(message: str, rows: Sequence[BadRow]) -> str:
    """Return the message of a failure with the place of the row that it is about, and the other bad rows.

    Example:
        >>> rows = [BadRow("no date", "a.csv", key={"id": 1}), BadRow("no number", "a.csv", key={"id": 2})]
        >>> message_with_rows("no date", rows)
        'no date, in id=1; further rows: id=2: no number'
    """
    own = [row.place for row in rows if row.reason == message]
    others = [row for row in rows if row.reason != message]
    first = f"{message}, in {', '.join(own)}" if own else message
    return f"{first}; {'further rows' if own else 'rows'}: {rows_text(others)}" if others else first


def _bad_row(row: Row) -> BadRow:
    key = None if row["key"] is None else json.loads(row["key"])
    place = str(row["file"] or "")
    local = local_path(place) if place else None
    return BadRow(
        reason=str(row["reason"]),
        file=place if local is None else str(local),
        key=key or None,
        record=str(row["record"]),
    )
