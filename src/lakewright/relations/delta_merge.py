"""MERGE into a Delta table with clauses that the project declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from lakewright.lake.columns import find_column
from lakewright.transform.sql import name_sql

if TYPE_CHECKING:
    from delta.tables import DeltaMergeBuilder, DeltaTable
    from pyspark.sql import DataFrame

__all__ = ["Clause", "merge_rows", "same_key"]


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
