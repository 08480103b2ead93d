"""Writes to a Delta table; each write is one commit."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakewright.lake.cluster import check_written
from lakewright.lake.columns import conform, fields_of
from lakewright.lake.commit import is_signing, signature
from lakewright.lake.delta_log import TableState
from lakewright.lake.delta_sql import Clause, merge_rows, table_history
from lakewright.lake.observation import observe_table, read_table
from lakewright.lake.partition import (
    Partition,
    partition_sql,
    typed_columns,
    typed_partition,
    with_folder_values,
)
from lakewright.lake.tracing import span
from lakewright.relations.relation import OutputMode, WriteSummary, left_out, undeclared_columns
from lakewright.schema.sql import name_sql, text_sql
from lakewright.spark.engine import counted
from lakewright.spec.models.fields import Field, PartitionField
from lakewright.spec.models.places import Address
from lakewright.transform.refusals import refusing_sql
from lakewright.transform.steps import find_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

    from lakewright.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class TableWrite:
    """One write to a table.

    Attributes:
        declared: The columns of the table; None means those it has, or those of the rows if they replace it.
        partition: Where all rows go; empty for the whole table.
        merge_key: Columns that identify a row in mode UPDATE.
    """

    workspace: Workspace
    address: Address
    partitions: tuple[PartitionField, ...]
    declared: tuple[Field, ...] | None
    options: Mapping[str, str]
    partition: Partition
    merge_key: tuple[str, ...] = ()

    def run(self, frame: DataFrame, mode: OutputMode) -> WriteSummary:
        """Write the rows in one commit, converted to the table's columns.

        `OVERWRITE` replaces the partition or the whole table, and `OVERWRITE_DYNAMIC` the partitions of the
        rows. `UPDATE` replaces rows with the same key and inserts the others.
        """
        state = observe_table(self.workspace.lake, self.address)
        also = undeclared_columns(self.declared or state.columns, state.columns, frame)
        outgoing = self._outgoing(frame, state, mode, also)
        lost, undeclared = left_out(frame, fields_of(outgoing.schema)), tuple(each.name for each in also)
        if mode is OutputMode.UPDATE:
            outgoing = with_unique_keys(outgoing, self.merge_key, f"the table {self.address}")
        is_added = mode is OutputMode.OVERWRITE and self._replaces_nothing(state)
        summary = self._commit(outgoing, state, OutputMode.APPEND if is_added else mode)
        if is_added and summary.version != (state.version or 0) + 1:
            # Another writer that ignores our locks committed in the meantime, perhaps to the same partition.
            summary = self._commit(outgoing, state, mode)
        return replace(summary, left_out=lost, undeclared=undeclared)

    def _commit(self, frame: DataFrame, state: TableState, mode: OutputMode) -> WriteSummary:
        with span("commit", table=self.address, mode=mode.value) as traced:
            is_merge = mode is OutputMode.UPDATE and state.exists
            rows = self._merge(frame) if is_merge else self._save(frame, state, mode)
            traced.note(rows=rows)
        return WriteSummary(rows, observe_table(self.workspace.lake, self.address).version)

    def _replaces_nothing(self, state: TableState) -> bool:
        """Return whether the destination has no rows: an append avoids the queries of Delta's overwrite."""
        if not state.exists or self.declared is None:
            return False
        if state.is_empty or not self.partition:
            return state.is_empty is True
        return state.has_files(typed_partition(self.partitions, self.partition)) is False

    def _outgoing(
        self, frame: DataFrame, state: TableState, mode: OutputMode, also: Sequence[Field]
    ) -> DataFrame:
        frame = into_partition(frame, self.partitions, self.partition)
        if self.declared is not None:
            frame = conform(frame, (*self.declared, *also), is_strict=True)
            # The table may be wider than its declaration, which needs no migration.
            fields = [state.column(each.name) or each for each in self.declared]
            return conform(frame, (*fields, *also), is_strict=True)
        is_replaced = mode is OutputMode.OVERWRITE and not self.partition
        return conform(frame, state.columns, is_strict=True) if state.exists and not is_replaced else frame

    def _save(self, frame: DataFrame, state: TableState, mode: OutputMode) -> int:
        rows, count = counted(frame)
        writer = rows.write.format("delta").options(**self.options)
        if self.partitions and (not state.exists or mode is OutputMode.OVERWRITE):
            writer = writer.partitionBy(*(each.name for each in self.partitions))
        spark = self.workspace.spark
        writer = self._with_mode(writer, mode) if state.exists else writer.mode("append")
        if is_signing(spark) and "userMetadata" not in self.options:
            is_replaced = state.exists and self.partition and mode is OutputMode.OVERWRITE
            writer = writer.option("userMetadata", signature(self.partition if is_replaced else None))
        if self.address.location is not None:
            check_written(self.workspace.lake, self.address.location, "the table")
            writer.save(self.address.location)
            return count()
        writer.saveAsTable(self.address.sql)
        # Delta writes catalog tables with a query of its own, and Spark does not pass on its observations.
        last = table_history(spark, self.address, 1).select("operationMetrics.numOutputRows").first()
        return int(last[0]) if last and last[0] is not None else 0

    def _with_mode(self, writer: DataFrameWriter, mode: OutputMode) -> DataFrameWriter:
        condition = partition_sql(self.partitions, self.partition)
        if mode is OutputMode.APPEND:
            return writer.mode("append")
        if mode is OutputMode.OVERWRITE_DYNAMIC and len(self.partition) < len(self.partitions):
            return writer.mode("overwrite").option("partitionOverwriteMode", "dynamic")
        if condition is not None:
            return writer.mode("overwrite").option("replaceWhere", condition)
        if self.declared is None:
            writer = writer.option("overwriteSchema", "true")
        return writer.mode("overwrite").option("partitionOverwriteMode", "static")

    def _merge(self, frame: DataFrame) -> int:
        fixed = [
            f"target.{each}"
            for name, text in self.partition.items()
            if (each := partition_sql(self.partitions, {name: text}))
        ]
        # Columns that the schema does not declare keep their values, and are null in new rows.
        matches = " AND ".join([*fixed, same_key(self.merge_key)])
        merge = Merge(matches, (Clause("update"), Clause("insert")))
        return merge.run(self.workspace.spark, self.address, frame)["target_records"]


def into_partition(frame: DataFrame, columns: Sequence[PartitionField], partition: Partition) -> DataFrame:
    """Return the rows with the values of the partition into which they are written."""
    frame = with_folder_values(frame, [each for each in columns if each.name not in partition])
    typed = typed_columns(columns, partition)
    return frame.withColumns(typed) if typed else frame


_REMEDY = "Let the mapping return one row per key, with a deduplicate or latest mapping."
_COUNT = "_lakewright_count"


def same_key(key: Sequence[str]) -> str:
    """Return the condition that source and target have the same key; null equals null.

    Example:
        >>> same_key(["id"])
        '`target`.`id` <=> `source`.`id`'
    """
    return " AND ".join(f"{name_sql('target', name)} <=> {name_sql('source', name)}" for name in key)


def with_unique_keys(source: DataFrame, key: Sequence[str], label: str, inserted: str = "true") -> DataFrame:
    """Return the rows, whose query fails if several rows to insert have the same key; null equals null.

    Delta refuses several rows that match one row of the table, but inserts all of a key that is new.

    Args:
        source: The rows to merge.
        key: The columns by which rows match.
        label: The table, as messages name it.
        inserted: SQL of whether a row is inserted if nothing matches it; it may name columns as `source.x`.
    """
    from pyspark.sql import functions

    columns = ", ".join(map(name_sql, key))
    values = ", ".join(
        f"concat({text_sql(f'{name}=')}, coalesce(cast({name_sql(name)} as string), 'null'))" for name in key
    )
    start = text_sql(f"{label}: several rows to write have the same key, ")
    refusal = refusing_sql(f"concat({start}, concat_ws(', ', {values}))", _REMEDY)
    is_unique = f"if({_COUNT} <= 1, true, {refusal})"
    counted = functions.expr(f"count_if({inserted}) over (partition by {columns})")
    return source.alias("source").withColumn(_COUNT, counted).where(is_unique).drop(_COUNT)


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge of rows, the source, into a table.

    Attributes:
        condition: The condition by which rows match.
        clauses: The actions, in order; one without columns sets all that source and target share.
    """

    condition: str
    clauses: Sequence[Clause]

    def unused_columns(self, source: Sequence[str], target: Collection[str]) -> tuple[str, ...]:
        """Return the columns of the source that the target lacks, and that no condition or expression names.

        There are none if no clause copies the columns that both have.

        Example:
            >>> merge = Merge("", [Clause("insert", "source.op = 'i'")])
            >>> merge.unused_columns(["id", "op", "note"], ["id"])
            ('note',)
        """
        if not self._copies:
            return ()
        present = {name.lower() for name in target}
        values = (text for each in self.clauses for text in each.columns.values())
        texts = [self.condition, *(each.condition or "" for each in self.clauses), *values]
        named = {word.lower() for text in texts for word in re.findall(r"\w+", text)}
        return tuple(name for name in source if name.lower() not in present | named)

    def written_columns(self, source: Sequence[str], partitions: Collection[str]) -> tuple[str, ...]:
        """Return the columns of the source that a new target has: those that the clauses set.

        Example:
            >>> Merge("", [Clause("insert", columns={"id": "source.id"})]).written_columns(["id", "op"], [])
            ('id',)
        """
        if self._copies:
            return tuple(source)
        wanted = {name.lower() for name in (*partitions, *(k for each in self.clauses for k in each.columns))}
        return tuple(name for name in source if name.lower() in wanted)

    @property
    def _copies(self) -> bool:
        """Whether a clause copies the columns that source and target share."""
        return any(each.action != "delete" and not each.columns for each in self.clauses)

    @property
    def inserted_sql(self) -> str:
        """SQL of whether the clauses insert a row that nothing matches.

        Example:
            >>> Merge("", [Clause("delete"), Clause("insert", "source.op = 'i'")]).inserted_sql
            "(source.op = 'i')"
        """
        conditions = [f"({each.condition or 'true'})" for each in self.clauses if each.action == "insert"]
        return " or ".join(conditions) or "false"

    def run(self, spark: SparkSession, address: Address, source: DataFrame) -> dict[str, int]:
        """Merge rows in one commit, and return how many were inserted, updated and deleted."""
        plain = {
            name: name_sql("source", found)
            for name in read_table(spark, address).columns
            if (found := find_name(source.columns, name)) is not None
        }
        clauses = [
            replace(each, columns={name_sql(name): sql for name, sql in (each.columns or plain).items()})
            for each in self.clauses
        ]
        names = ("target", "source")
        counts = merge_rows(spark, address, source, clauses, condition=self.condition, names=names)
        kinds = ("affected", "inserted", "updated", "deleted")
        numbers = {kind: counts.get(f"num_{kind}_rows", 0) for kind in kinds}
        return {"target_records": numbers.pop("affected"), **numbers}
