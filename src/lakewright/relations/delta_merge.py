"""MERGE into a Delta table with clauses that the project declares."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from lakewright.errors import TargetError
from lakewright.lake.columns import find_column
from lakewright.lake.spark_errors import spark_errors
from lakewright.transform.sql import name_sql

if TYPE_CHECKING:
    from delta.tables import DeltaMergeBuilder, DeltaTable
    from pyspark.sql import DataFrame

__all__ = ["Clause", "merge_rows", "refusing_duplicates", "same_key", "unused_columns", "written_columns"]


@dataclass(frozen=True, slots=True)
class Clause:
    """The action for rows that satisfy a condition.

    Attributes:
        columns: SQL expression of each column to set; empty sets all columns that source and target share.
    """

    action: Literal["insert", "update", "delete"]
    condition: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)


def same_key(key: Sequence[str]) -> str:
    """Return the condition that source and target have the same key; null equals null.

    Example:
        >>> same_key(["id"])
        '`target`.`id` <=> `source`.`id`'
    """
    return " AND ".join(f"{name_sql('target', name)} <=> {name_sql('source', name)}" for name in key)


@contextmanager
def refusing_duplicates(label: str, source: DataFrame, key: Sequence[str]) -> Iterator[None]:
    """Raise what Delta says of several rows that match one row as an error that names a key.

    Args:
        label: The relation, as messages name it.
        source: The rows to merge.
        key: The columns by which they match; none if a condition decides.

    Raises:
        TargetError: Several rows match the same row of the table; nothing was written.
    """
    try:
        yield
    except spark_errors() as error:
        if "DELTA_MULTIPLE_SOURCE_ROW_MATCHING" not in str(error):
            raise
        raise TargetError(
            f"{label}: several rows to merge match the same row of the table{_repeated(source, key)}",
            remedy="Nothing was written. Let the mapping return one row per key, with a deduplicate or "
            "latest mapping.",
        ) from error


def _repeated(source: DataFrame, key: Sequence[str]) -> str:
    if not key:
        return ""
    counted = source.groupBy(*map(name_sql, key)).count()
    row = counted.where("count > 1").first()
    return "" if row is None else ": " + ", ".join(f"{name}={row[place]}" for place, name in enumerate(key))


def unused_columns(
    source: Sequence[str], target: Collection[str], matches: str, clauses: Sequence[Clause]
) -> tuple[str, ...]:
    """Return the columns of the source that the target lacks, and that no condition or expression names.

    There are none if no clause copies the columns that both have.

    Args:
        source: Names of the source's columns.
        target: Names of the target's columns.
        matches: The condition by which rows match.
        clauses: The clauses.

    Example:
        >>> unused_columns(["id", "op", "note"], ["id"], "", [Clause("insert", "source.op = 'i'")])
        ('note',)
    """
    if not _copies(clauses):
        return ()
    present = {name.lower() for name in target}
    texts = [
        matches,
        *(c.condition or "" for c in clauses),
        *(e for c in clauses for e in c.columns.values()),
    ]
    named = {word.lower() for text in texts for word in re.findall(r"\w+", text)}
    return tuple(name for name in source if name.lower() not in present | named)


def written_columns(
    source: Sequence[str], partitions: Collection[str], clauses: Sequence[Clause]
) -> tuple[str, ...]:
    """Return the columns of the source that a new target has: those that the clauses set.

    Example:
        >>> written_columns(["id", "op"], [], [Clause("insert", columns={"id": "source.id"})])
        ('id',)
    """
    if _copies(clauses):
        return tuple(source)
    wanted = {name.lower() for name in (*partitions, *(name for c in clauses for name in c.columns))}
    return tuple(name for name in source if name.lower() in wanted)


def _copies(clauses: Sequence[Clause]) -> bool:
    """Return whether a clause copies the columns that source and target share."""
    return any(clause.action != "delete" and not clause.columns for clause in clauses)


def merge_rows(
    table: DeltaTable, source: DataFrame, condition: str, clauses: Sequence[Clause]
) -> dict[str, int]:
    """Merge rows into a table in one commit, and return how many were inserted, updated and deleted."""
    common = [
        (name, found) for name in table.toDF().columns if (found := find_column(source, name)) is not None
    ]
    plain = {name: name_sql("source", found) for name, found in common}
    merge = table.alias("target").merge(source.alias("source"), condition)
    for clause in clauses:
        merge = _with_clause(merge, clause, {name_sql(k): v for k, v in (clause.columns or plain).items()})
    row = merge.execute().first()
    counts = {} if row is None else row.asDict()
    return {
        "target_records": int(counts.get("num_affected_rows", 0)),
        "inserted": int(counts.get("num_inserted_rows", 0)),
        "updated": int(counts.get("num_updated_rows", 0)),
        "deleted": int(counts.get("num_deleted_rows", 0)),
    }


def _with_clause(merge: DeltaMergeBuilder, clause: Clause, values: Mapping[str, str]) -> DeltaMergeBuilder:
    condition = clause.condition or "true"
    if clause.action == "insert":
        return merge.whenNotMatchedInsert(condition=condition, values=dict(values))
    if clause.action == "update":
        return merge.whenMatchedUpdate(condition=condition, set=dict(values))
    return merge.whenMatchedDelete(condition=condition)
