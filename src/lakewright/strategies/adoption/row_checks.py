"""Checks of the rows of a table that is to be adopted: rows whose meaning is not clear prevent it.

Source: `processing-strategies.md`, "Version Lifecycle"; the checks are Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from lakewright.strategies.row_checks import RowCheck, check_rows
from lakewright.transform.steps import instant_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.spec.models.entity import Entity
    from lakewright.transform.pipeline import PreparedSlice

__all__ = ["check_adopted", "row_checks"]

_P = "_lakewright_"
KEY, FROM, END, CURRENT, DELETED, SEEN, NEXT, FORMER = (
    f"{_P}{name}" for name in ("key", "from", "end", "current", "deleted", "seen", "next", "former")
)
"""Columns of the rows while their intervals are derived; the end is null for versions without one."""

FLAG, OPEN, UNREAD, SAME, NEXT_FLAG = (
    f"{_P}{name}" for name in ("flag", "open", "unread", "same", "next_flag")
)


def row_checks(at: datetime, entity: Entity, *, is_historic: bool) -> Iterator[RowCheck]:
    """Yield the checks of rows whose meaning would not be clear.

    Args:
        at: The latest instant at which versions may begin or end.
        entity: The entity.
        is_historic: Whether rows are versions.
    """
    adoption = entity.settings.adopt
    keys = "Correct the table, or the entity's business key."
    times = "Correct the table first, for example by restoring its last good version."
    yield RowCheck("row has", "rows have", "a value that can't be read as a time or a flag", UNREAD, times)
    if not is_historic:
        yield RowCheck("row shares its key", "rows share their key", "with another one", f"{SAME} > 1", keys)
        return
    yield RowCheck("version has", "versions have", "no beginning", f"{FROM} is null", times)
    yield RowCheck(
        "version is",
        "versions are",
        "current although a later one has the same key",
        f"{END} is null and {NEXT} is not null",
        times,
    )
    yield RowCheck(
        "version begins",
        "versions begin",
        "when another one of the same key begins",
        f"{NEXT} = {FROM}",
        times,
    )
    yield RowCheck("version ends", "versions end", "before beginning", f"{END} < {FROM}", times)
    yield RowCheck("version overlaps", "versions overlap", "the one before", f"{FORMER} > {FROM}", times)
    yield RowCheck(
        "version is",
        "versions are",
        "flagged as current with an end, or not flagged without one",
        f"{CURRENT} <> {OPEN}",
        times,
    )
    future = instant_sql(at)
    yield RowCheck(
        "version begins or ends",
        "versions begin or end",
        "in the future",
        f"{FROM} > {future} or {END} > {future}",
        "If such a time stands for no end, declare it as `sentinel` in `adopt`.",
    )
    if adoption is not None and adoption.are_deletes_rows:
        yield RowCheck(
            "deleted row does",
            "deleted rows do",
            "not begin where a version of the same key ends",
            f"coalesce({FLAG}, false) and not {FORMER} <=> {FROM}",
            "Set `deletes: flag` in `adopt` if the flag belongs to the version that was closed.",
        )
    else:
        yield RowCheck(
            "version is",
            "versions are",
            "current and flagged as deleted",
            f"{END} is null and {FLAG}",
            "Set `deletes: row` in `adopt` if these rows begin with the delete; or declare `last_seen`.",
        )


def check_adopted(rows: DataFrame, checks: Iterable[RowCheck], prepared: PreparedSlice) -> dict[str, int]:
    """Check rows and return the numbers of all, of current and of deleted ones, by one query.

    Raises:
        MigrationError: Rows fail checks; the message names all failed checks, with samples of keys.
    """
    is_current = f"{END} is null" if END in rows.columns else "true"
    counts = {
        "rows": "count(1)",
        "current": f"count_if({is_current} and not coalesce({DELETED}, false))",
        "deleted": f"count_if(coalesce({DELETED}, false))",
    }
    return check_rows(
        rows, checks, keys=prepared.key_columns, refusal="the table can't be adopted", counts=counts
    )
