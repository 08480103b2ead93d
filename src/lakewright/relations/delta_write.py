"""Writes to a Delta table; each write is one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.lake.cluster import check_written
from lakewright.lake.columns import conform, fields_of
from lakewright.lake.observation import observe_table
from lakewright.lake.partition import (
    Partition,
    partition_sql,
    typed_columns,
    typed_partition,
    with_told_folders,
)
from lakewright.lake.signature import emptying_signature, is_signing
from lakewright.lake.table_state import TableState
from lakewright.lake.tracing import span
from lakewright.relations.delta_merge import refusing_duplicates, same_key, with_unique_keys
from lakewright.relations.relation import OutputMode, WriteSummary, left_out, undeclared_columns
from lakewright.schema.sql import name_sql
from lakewright.spec.models.fields import Field, PartitionField
from lakewright.spec.models.places import Address

if TYPE_CHECKING:
    from delta.tables import DeltaTable
    from pyspark.sql import Column, DataFrame, DataFrameWriter

    from lakewright.workspace.workspace import Workspace

__all__ = ["WriteTarget", "delta_table", "write_table"]


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
    from pyspark.sql import Observation, functions

    observation = Observation()
    writer = frame.observe(observation, functions.count(functions.lit(1)).alias("rows")).write
    writer = writer.format("delta").options(**target.options)
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
        return int(observation.get["rows"])
    writer.saveAsTable(target.address.sql)
    # Delta writes catalog tables with a query of its own, and Spark does not pass on its observations.
    last = delta_table(workspace, target.address).history(1).select("operationMetrics.numOutputRows").first()
    return int(last[0]) if last and last[0] is not None else 0


def delta_table(workspace: Workspace, address: Address) -> DeltaTable:
    """Return Delta's handle of a table."""
    from delta.tables import DeltaTable

    if address.location is not None:
        return DeltaTable.forPath(workspace.spark, address.location)
    return DeltaTable.forName(workspace.spark, address.sql)


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
    table = delta_table(workspace, target.address)
    merge = table.alias("target").merge(
        frame.alias("source"), " AND ".join([*fixed, same_key(target.merge_key)])
    )
    # Columns that the schema does not declare keep their values, and are null in new rows.
    found = {name.lower(): name for name in frame.columns}
    values: dict[str, str | Column] = {
        name_sql(name): f"source.{name_sql(found[name.lower()])}"
        for name in table.toDF().columns
        if name.lower() in found
    }
    row = merge.whenMatchedUpdate(set=values).whenNotMatchedInsert(values=values).execute().first()
    return int(row["num_affected_rows"]) if row else 0
