"""Rows of an entity's past as versions of its records: from dated exports, or from another tool's versions.

Rows that follow each other with equal values are one version. A version ends where the declared end is, or
else where the next row of its record begins; of whole exports also with the first one that lacks the record.
Everything here is lazy.

Source: the rules of rewinds, "Rebuild"; `processing-strategies.md`, "Version Lifecycle".
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from lakewright.schema.sql import name_sql
from lakewright.transform.steps import instant_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.transform.system_columns import SystemColumns

__all__ = [
    "CARRIED",
    "DECLARED_END",
    "FILE",
    "IS_UNREAD",
    "NEXT",
    "SAME",
    "START",
    "timed_rows",
    "versions_of",
]

START, DECLARED_END, IS_UNREAD, FILE = (
    f"_lakewright_{name}" for name in ("start", "declared_end", "unread", "file")
)
"""Columns of the rows: the declared times, whether one of them can't be read, and the row's place."""

CARRIED = (START, DECLARED_END, IS_UNREAD, FILE)

NEXT, SAME = "_lakewright_next", "_lakewright_same"
"""The start of the next row of a record, and the number of its rows that begin together."""

_END, _NEXT_EXPORT, _IS_FIRST, _RUN = (
    f"_lakewright_{name}" for name in ("end", "next_export", "is_first", "run")
)
_LAST_END, _NEXT_START, _NEXT_DELETED = (
    f"_lakewright_{name}" for name in ("last_end", "next_start", "next_deleted")
)


def timed_rows(rows: DataFrame, system: SystemColumns, *, before: datetime) -> DataFrame:
    """Return the rows that begin before an instant, each once, with `NEXT` and `SAME`.

    Rows without a start, or with a time that can't be read, stay; `versions_of` needs rows without such.

    Args:
        rows: Prepared rows with the columns `CARRIED`.
        system: Names of the system columns.
        before: The processing time of the first slice.
    """
    key, hash_, deleted = system.key, system.hash, system.deleted
    found = rows.where(f"{START} is null or {START} < {instant_sql(before)}")
    found = found.dropDuplicates([key, hash_, deleted, START, DECLARED_END, IS_UNREAD])
    of_record = f"partition by {name_sql(key)}"
    return found.selectExpr(
        "*",
        f"lead({START}) over ({of_record} order by {START}) as {NEXT}",
        f"count(1) over ({of_record}, {START}) as {SAME}",
    )


def versions_of(
    rows: DataFrame, system: SystemColumns, *, before: datetime, are_exports_whole: bool
) -> DataFrame:
    """Return the versions that rows are, with the columns of the silver table.

    A row that is flagged as deleted is no version: it ends the one before it. The last version of a record
    is open unless it has an end before the first slice.

    Args:
        rows: What `timed_rows` returns, without faults.
        system: Names of the system columns.
        before: The processing time of the first slice.
        are_exports_whole: Whether rows with the same start are all records of the source, so that a record
            which they lack was deleted.
    """
    key, hash_, deleted = (name_sql(name) for name in (system.key, system.hash, system.deleted))
    end = f"coalesce({DECLARED_END}, {NEXT})"
    if are_exports_whole:
        rows = rows.join(_exports(rows), START)
        end = f"least({end}, {_NEXT_EXPORT})"
    in_order = f"partition by {key} order by {START}"
    found = rows.selectExpr("*", f"if({end} < {instant_sql(before)}, {end}, null) as {_END}")
    is_continued = (
        f"not {deleted} and not lag({deleted}) over ({in_order}) and lag({_END}) over ({in_order}) = {START} "
        f"and lag({hash_}) over ({in_order}) <=> {hash_}"
    )
    found = found.selectExpr("*", f"not coalesce({is_continued}, false) as {_IS_FIRST}")
    found = found.selectExpr("*", f"count_if({_IS_FIRST}) over ({in_order}) as {_RUN}")
    of_run = f"partition by {key}, {_RUN} order by {START}"
    last = f"last({_END}) over ({of_run} rows between unbounded preceding and unbounded following)"
    found = found.selectExpr("*", f"{last} as {_LAST_END}").where(_IS_FIRST)
    found = found.selectExpr(
        "*",
        f"lead({START}) over ({in_order}) as {_NEXT_START}",
        f"lead({deleted}) over ({in_order}) as {_NEXT_DELETED}",
    ).where(f"not {deleted}")
    is_replaced = f"coalesce({_NEXT_START} = {_LAST_END} and not {_NEXT_DELETED}, false)"
    values = {
        system.valid_from: START,
        system.valid_to: _LAST_END,
        system.is_current: f"{_LAST_END} is null",
        system.deleted: f"({_LAST_END} is not null and not {is_replaced})",
        system.last_seen: START,
        system.filename: FILE,
    }
    names = [name for name in rows.columns if not name.startswith("_lakewright_")]
    return found.selectExpr(*(f"{values.get(name, name_sql(name))} as {name_sql(name)}" for name in names))


def _exports(rows: DataFrame) -> DataFrame:
    """Return the time of each export with that of the next one."""
    times = rows.select(START).distinct()
    return times.selectExpr(START, f"lead({START}) over (order by {START}) as {_NEXT_EXPORT}")
