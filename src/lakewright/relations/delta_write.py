"""Writes to a Delta table; each write is one commit."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from lakewright.errors import TargetError
from lakewright.lake.cluster import check_written
from lakewright.lake.columns import conform, fields_of, find_column
from lakewright.lake.commit_effects import emptying_signature, is_signing
from lakewright.lake.measures import counted
from lakewright.lake.observation import delta_table, observe_table
from lakewright.lake.partition import (
    Partition,
    partition_sql,
    typed_columns,
    typed_partition,
    with_told_folders,
)
from lakewright.lake.spark_errors import spark_errors
from lakewright.lake.table_state import TableState
from lakewright.lake.tracing import span
from lakewright.relations.relation import OutputMode, WriteSummary, left_out, undeclared_columns
from lakewright.schema.sql import name_sql, text_sql
from lakewright.spark.jvm import full_text
from lakewright.spec.models.fields import Field, PartitionField
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from delta.tables import DeltaMergeBuilder, DeltaTable
    from pyspark.sql import DataFrame, DataFrameWriter

    from lakewright.workspace.workspace import Workspace

__all__ = [
    "Clause",
    "WriteTarget",
    "inserted_sql",
    "merge_rows",
    "refusing_duplicates",
    "same_key",
    "unused_columns",
    "with_unique_keys",
    "write_table",
    "written_columns",
]


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """The table to write to.

    Attributes:
        declared: Its columns; None means those of the table, or those of the rows if they replace it.
        merge_key: Columns that identify a row in mode UPDATE.
    """

    address: Address
    partitions: tuple[PartitionField, ...]
    declared: tuple[Field, ...] | None
    options: Mapping[str, str]
    merge_key: tuple[str, ...] = ()


def write_table(
    workspace: Workspace, frame: DataFrame, target: WriteTarget, *, partition: Partition, mode: OutputMode
) -> WriteSummary:
    """Write the rows in one commit, converted to the table's columns.

    `OVERWRITE` replaces the partition or the whole table, and `OVERWRITE_DYNAMIC` the partitions of the rows.
    `UPDATE` replaces rows with the same key and inserts the others.
    """
    state = observe_table(workspace.lake, target.address)
    also = undeclared_columns(target.declared or state.columns, state.columns, frame)
    outgoing = _outgoing(frame, target, state, partition, mode, also=also)
    lost, undeclared = left_out(frame, fields_of(outgoing.schema)), tuple(each.name for each in also)
    frame = outgoing
    if mode is OutputMode.UPDATE:
        frame = with_unique_keys(frame, target.merge_key)

    def write(mode: OutputMode) -> WriteSummary:
        with span("commit", table=target.address, mode=mode.value) as traced:
            with refusing_duplicates(f"the table {target.address}"):
                if mode is OutputMode.UPDATE and state.exists:
                    rows = _merge(workspace, frame, target, partition)
                else:
                    rows = _save(workspace, frame, target, state, partition=partition, mode=mode)
            traced.note(rows=rows)
        return WriteSummary(rows, observe_table(workspace.lake, target.address).version, lost, undeclared)

    if mode is OutputMode.OVERWRITE and _replaces_nothing(target, state, partition):
        added = write(OutputMode.APPEND)
        if state.version is not None and added.version == state.version + 1:
            return added
        # Another writer that ignores our locks committed in the meantime, perhaps to the same partition.
    return write(mode)


def _replaces_nothing(target: WriteTarget, state: TableState, partition: Partition) -> bool:
    """Return whether the destination has no rows: an append then avoids the queries of Delta's overwrite."""
    if not state.exists or target.declared is None:
        return False
    if state.is_empty or not partition:
        return state.is_empty is True
    return state.has_files(typed_partition(target.partitions, partition)) is False


def _outgoing(
    frame: DataFrame,
    target: WriteTarget,
    state: TableState,
    partition: Partition,
    mode: OutputMode,
    *,
    also: Sequence[Field],
) -> DataFrame:
    frame = with_told_folders(frame, [each for each in target.partitions if each.name not in partition])
    for name, value in typed_columns(target.partitions, partition).items():
        frame = frame.withColumn(name, value)
    if target.declared is not None:
        frame = conform(frame, (*target.declared, *also), is_strict=True)
        # The table may be wider than its declaration, which needs no migration.
        present = {each.name.lower(): each for each in state.columns}
        fields = [present.get(each.name.lower(), each) for each in target.declared]
        return conform(frame, (*fields, *also), is_strict=True)
    is_replaced = mode is OutputMode.OVERWRITE and not partition
    return conform(frame, state.columns, is_strict=True) if state.exists and not is_replaced else frame


def _save(
    workspace: Workspace,
    frame: DataFrame,
    target: WriteTarget,
    state: TableState,
    *,
    partition: Partition,
    mode: OutputMode,
) -> int:
    rows, count = counted(frame)
    writer = rows.write.format("delta").options(**target.options)
    if target.partitions and (not state.exists or mode is OutputMode.OVERWRITE):
        writer = writer.partitionBy(*(each.name for each in target.partitions))
    if state.exists:
        writer = _with_mode(writer, target, partition, mode)
        if partition and mode is OutputMode.OVERWRITE and is_signing(workspace.spark):
            writer = writer.option("userMetadata", emptying_signature(partition))
    else:
        writer = writer.mode("append")
    if target.address.location is not None:
        check_written(workspace.lake, target.address.location, "the table")
        writer.save(target.address.location)
        return count()
    writer.saveAsTable(target.address.sql)
    # Delta writes catalog tables with a query of its own, and Spark does not pass on its observations.
    last = (
        delta_table(workspace.spark, target.address)
        .history(1)
        .select("operationMetrics.numOutputRows")
        .first()
    )
    return int(last[0]) if last and last[0] is not None else 0


def _with_mode(
    writer: DataFrameWriter, target: WriteTarget, partition: Partition, mode: OutputMode
) -> DataFrameWriter:
    condition = partition_sql(target.partitions, partition)
    if mode is OutputMode.APPEND:
        return writer.mode("append")
    if mode is OutputMode.OVERWRITE_DYNAMIC and len(partition) < len(target.partitions):
        return writer.mode("overwrite").option("partitionOverwriteMode", "dynamic")
    if condition is not None:
        return writer.mode("overwrite").option("replaceWhere", condition)
    if target.declared is None:
        writer = writer.option("overwriteSchema", "true")
    return writer.mode("overwrite").option("partitionOverwriteMode", "static")


def _merge(workspace: Workspace, frame: DataFrame, target: WriteTarget, partition: Partition) -> int:
    fixed = [
        f"target.{each}"
        for name, text in partition.items()
        if (each := partition_sql(target.partitions, {name: text}))
    ]
    # Columns that the schema does not declare keep their values, and are null in new rows.
    table, matches = delta_table(workspace.spark, target.address), [*fixed, same_key(target.merge_key)]
    counts = merge_rows(table, frame, " AND ".join(matches), [Clause("update"), Clause("insert")])
    return counts["target_records"]


_MARK, _END = "lakewright-key\u241f", "\u241f"
_FAULT = re.compile(f"{_MARK}(.*?){_END}", re.DOTALL)
_COUNT = "_lakewright_count"


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


def with_unique_keys(source: DataFrame, key: Sequence[str], inserted: str = "true") -> DataFrame:
    """Return the rows, whose query fails if several rows to insert have the same key; null equals null.

    Delta refuses several rows that match one row of the table, but inserts all of a key that is new.

    Args:
        source: The rows to merge.
        key: The columns by which rows match.
        inserted: SQL of whether a row is inserted if nothing matches it; it may name columns as `source.x`.
    """
    from pyspark.sql import functions

    columns = ", ".join(map(name_sql, key))
    told = ", ".join(
        f"concat({text_sql(f'{name}=')}, coalesce(cast({name_sql(name)} as string), 'null'))" for name in key
    )
    fault = f"raise_error(concat({text_sql(_MARK)}, concat_ws(', ', {told}), {text_sql(_END)}))"
    is_unique = f"if({_COUNT} <= 1, true, {fault})"
    counted = functions.expr(f"count_if({inserted}) over (partition by {columns})")
    return source.alias("source").withColumn(_COUNT, counted).where(is_unique).drop(_COUNT)


@contextmanager
def refusing_duplicates(label: str) -> Iterator[None]:
    """Raise what a query says of several rows with the same key as an error.

    Args:
        label: The relation, as messages name it.

    Raises:
        TargetError: Several rows have the same key, or match the same row of the table; nothing was written.
    """
    try:
        yield
    except spark_errors() as error:
        found = _FAULT.search(full_text(error))
        if found is not None:
            told = f"several rows to write have the same key, {found[1]}"
        elif "DELTA_MULTIPLE_SOURCE_ROW_MATCHING" in str(error):
            told = "several rows to merge match the same row of the table"
        else:
            raise
        raise TargetError(
            f"{label}: {told}",
            remedy="Nothing was written. Let the mapping return one row per key, with a deduplicate or "
            "latest mapping.",
        ) from error


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


def inserted_sql(clauses: Sequence[Clause]) -> str:
    """Return SQL of whether clauses insert a row that nothing matches.

    Example:
        >>> inserted_sql([Clause("delete"), Clause("insert", "source.op = 'i'")])
        "(source.op = 'i')"
    """
    conditions = [f"({clause.condition or 'true'})" for clause in clauses if clause.action == "insert"]
    return " or ".join(conditions) or "false"


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
