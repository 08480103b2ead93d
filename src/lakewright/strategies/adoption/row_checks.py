"""Checks of the rows of a table that is to be adopted: rows whose meaning is not clear prevent it.

Source: `processing-strategies.md`, "Version Lifecycle"; the checks are Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakewright.errors import MigrationError
from lakewright.transform.sql import name_sql
from lakewright.transform.steps import instant_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.spec.models.entity import Entity
    from lakewright.transform.pipeline import PreparedSlice

__all__ = ["RowCheck", "check_rows", "row_checks"]

SAMPLES = 5
"""Number of keys that an error shows for each failed check."""

_P = "_lakewright_"
KEY, FROM, END, CURRENT, DELETED, SEEN, NEXT, FORMER = (
    f"{_P}{name}" for name in ("key", "from", "end", "current", "deleted", "seen", "next", "former")
)
"""Columns of the rows while their intervals are derived; the end is null for versions without one."""

FLAG, OPEN, UNREAD, SAME, NEXT_FLAG = (
    f"{_P}{name}" for name in ("flag", "open", "unread", "same", "next_flag")
)


@dataclass(frozen=True, slots=True)
class RowCheck:
    """A check of rows.

    Attributes:
        singular: Subject and verb of the sentence on one row that fails.
        plural: The same on several rows.
        rest: The rest of that sentence.
        condition: SQL condition of the rows that fail.
        remedy: What to do about them.
    """

    singular: str
    plural: str
    rest: str
    condition: str
    remedy: str

    def text(self, count: int) -> str:
        """Return the sentence on a number of rows that fail."""
        return f"{count} {self.singular if count == 1 else self.plural} {self.rest}"


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


def check_rows(rows: DataFrame, checks: Iterator[RowCheck], prepared: PreparedSlice) -> dict[str, int]:
    """Check rows and return the numbers of all, of current and of deleted ones, by one query.

    Raises:
        MigrationError: Rows fail checks; the message names all failed checks, with samples of keys.
    """
    from pyspark.sql import functions

    found = list(checks)
    is_current = f"{END} is null" if END in rows.columns else "true"
    aggregates = {
        "rows": "count(1)",
        "current": f"count_if({is_current} and not coalesce({DELETED}, false))",
        "deleted": f"count_if(coalesce({DELETED}, false))",
        **{f"check{n}": f"count_if(coalesce({check.condition}, false))" for n, check in enumerate(found)},
    }
    row = rows.agg(*(functions.expr(sql).alias(name) for name, sql in aggregates.items())).first()
    counts: dict[str, Any] = {} if row is None else row.asDict()
    failed = [(check, counts[f"check{n}"]) for n, check in enumerate(found) if counts[f"check{n}"]]
    if failed:
        raise _failed_error(rows, failed, prepared)
    return {name: int(counts[name]) for name in ("rows", "current", "deleted")}


def _failed_error(
    rows: DataFrame, failed: list[tuple[RowCheck, int]], prepared: PreparedSlice
) -> MigrationError:
    texts = []
    for check, count in failed:
        samples = rows.where(check.condition).selectExpr(*map(name_sql, prepared.key_columns)).limit(SAMPLES)
        shown = [
            ", ".join(f"{name}={row[name]}" for name in prepared.key_columns) for row in samples.collect()
        ]
        texts.append(f"{check.text(count)} ({'; '.join(shown)}{' …' if count > len(shown) else ''})")
    return MigrationError(
        f"the table can't be adopted: {'; '.join(texts)}",
        remedy=failed[0][0].remedy,
        details={f"{check.plural} {check.rest}": count for check, count in failed},
    )
