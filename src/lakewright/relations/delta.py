"""The `delta` relation: a Delta table at a location or in the catalog; each write to it is one commit."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.errors import Fault, SpecError, TargetError
from lakewright.lake.cluster import check_written
from lakewright.lake.columns import conform, fields_of
from lakewright.lake.commit import (
    LandedCommit,
    Token,
    content_of_build,
    is_signing,
    read_table_at,
    signature,
)
from lakewright.lake.commit_lock import commit_lock
from lakewright.lake.delta_log import TableState
from lakewright.lake.delta_sql import Clause, merge_rows, table_history
from lakewright.lake.history import EffectiveCommit, find_effective
from lakewright.lake.observation import observe_table, read_table
from lakewright.lake.partition import (
    Partition,
    canonical_partition,
    partition_sql,
    typed_columns,
    typed_partition,
    with_folder_values,
)
from lakewright.lake.table import (
    MigrationStep,
    alter_table,
    create_table,
    drop_entry_alone,
    drop_table,
    truncate_table,
)
from lakewright.lake.tracing import span
from lakewright.plan.observation import Answer
from lakewright.plan.resource import Resource
from lakewright.relations.migration import MigratedTable, Shape, find_steps
from lakewright.relations.relation import OutputMode, WriteSummary, left_out, undeclared_columns
from lakewright.schema.sql import name_sql, text_sql
from lakewright.spark.engine import counted
from lakewright.spark.functions import functions
from lakewright.spec.models.base import TextMap, Texts
from lakewright.spec.models.fields import Field, PartitionField
from lakewright.spec.models.places import Address
from lakewright.transform.refusals import refusing_sql
from lakewright.transform.steps import find_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

    from lakewright.workspace.workspace import Workspace


class DeltaRelation(MigratedTable):
    """A Delta table; each write is one commit."""

    others: ClassVar[tuple[str, str]] = ("is no Delta table", "Name a relation of kind delta.")

    keeps_past: ClassVar[bool] = True

    appends_once: ClassVar[bool] = True

    modes: ClassVar[frozenset[OutputMode]] = frozenset(OutputMode)

    location: str | None = Declared(
        default=None,
        description="Folder; with `table`, of the table's files.",
    )
    database: str | None = Declared(default=None, description="Database in the catalog.")
    table: str | None = Declared(default=None, description="Name in the catalog.")
    options: TextMap = Declared(default_factory=dict, description="Options for Delta's reader and writer.")
    properties: TextMap = Declared(
        default_factory=dict, description="Properties of a table that Lakewright creates."
    )
    merge_key: Texts = Declared(default=(), description="Columns that identify a row in mode UPDATE.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.location is None and self.table is None:
            raise ValueError("a delta relation needs `location`, `table` or both")
        return self

    def address(self, workspace: Workspace) -> Address:
        """Return the location of the table; one with a name in the catalog is known by it."""
        if self.table is not None:
            return Address(name=f"{self.database}.{self.table}" if self.database else self.table)
        return Address(location=workspace.resolve_location(self.location or ""))

    def _place(self, workspace: Workspace) -> str | None:
        """Return the folder of a table that has a name in the catalog too."""
        if self.table is None or self.location is None:
            return None
        return workspace.resolve_location(self.location)

    def table_sql(self, workspace: Workspace) -> str | None:
        """Return the address of the table in SQL."""
        return self.address(workspace).sql

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the table, or one of its partitions."""
        values, place = canonical_partition(self.partitions, partition or {}), self._place(workspace)
        files = [] if place is None else [Resource.file(place, values)]
        return frozenset({Resource.at(self.address(workspace), values), *files})

    def found(self, workspace: Workspace) -> TableState | None:
        """Return the table as it is, or None if there is none; only catalog tables need Spark."""
        state = observe_table(workspace.lake, self.address(workspace))
        return state if state.exists else None

    def steps(self, workspace: Workspace, found: TableState) -> tuple[MigrationStep, ...]:
        """Return what makes the table the declared one."""
        declared = self.declared(workspace)
        if declared is None:
            return ()
        present = Shape(found.columns, found.partition_columns)
        wanted = Shape(declared, tuple(each.name for each in self.partitions))
        return find_steps(present, wanted, self.policy(workspace))

    def is_filled(self, workspace: Workspace, found: TableState, partition: Partition) -> bool | None:
        """Return whether the table, or a partition of it, has rows; None if the log does not show it."""
        if not partition or found.is_empty:
            return None if found.is_empty is None else not found.is_empty
        has_files = found.has_files(typed_partition(self.partitions, partition))
        return not self.read(workspace, [partition]).isEmpty() if has_files is None else has_files

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the table, with the declared columns if there are any.

        Raises:
            TargetError: The table does not exist.
        """
        self.existing(workspace)
        address, past = self.address(workspace), workspace.lake.past
        if past is None:
            frame = read_table(workspace.spark, address)
        else:
            frame = read_table_at(workspace.lake, workspace.spark, address, past.at)
        return self.without_undeclared(workspace, self.within(frame, partitions))

    def write(
        self, workspace: Workspace, frame: DataFrame, *, partition: Partition, mode: OutputMode
    ) -> WriteSummary:
        """Write the rows in one commit; with a partition, all of them go there regardless of their values."""
        return self._write(workspace, frame, self.options, partition=partition, mode=mode)

    def append(
        self,
        workspace: Workspace,
        frame: DataFrame,
        *,
        partition: Partition,
        append_id: str,
    ) -> WriteSummary:
        """Append the rows; Delta skips the commit if another process has made it meanwhile."""
        found = self._effective(workspace, append_id, partition)
        number = found.number if found.commit is not None else found.number + 1
        text = Token(append_id, number, content_of_build()).text
        token = {"txnAppId": append_id, "txnVersion": str(number), "userMetadata": text}
        options = {**token, **self.options}
        return self._write(workspace, frame, options, partition=partition, mode=OutputMode.APPEND)

    def find_append(self, workspace: Workspace, append_id: str, partition: Partition) -> LandedCommit | None:
        """Return the append of that identity; None if there is none, or its rows are not there any more."""
        return self._effective(workspace, append_id, partition).commit

    def _effective(self, workspace: Workspace, append_id: str, partition: Partition) -> EffectiveCommit:
        address = self.address(workspace)
        if not observe_table(workspace.lake, address).exists:
            return EffectiveCommit(0, None)
        found = find_effective(workspace.lake, address, append_id, partition)
        if found.commit is None or self.observe(workspace, partition).filled is not Answer.NO:
            return found
        return replace(found, commit=None)

    def _write(
        self,
        workspace: Workspace,
        frame: DataFrame,
        options: Mapping[str, str],
        *,
        partition: Partition,
        mode: OutputMode,
    ) -> WriteSummary:
        wanted, declared = canonical_partition(self.partitions, partition), self.declared(workspace)
        merge_key = self.update_key() if mode is OutputMode.UPDATE else ()
        self.create(workspace, self.brought(frame) if self._place(workspace) else None)
        with self._committing(workspace):
            return TableWrite(self, workspace, wanted, declared, options, merge_key).run(frame, mode)

    @contextmanager
    def _committing(self, workspace: Workspace) -> Iterator[None]:
        """Hold the lock of the table, while this thread may commit to it."""
        with commit_lock(self.address(workspace), f"process {os.getpid()}"):
            workspace.lake.check_commit()
            yield

    def merge(
        self,
        workspace: Workspace,
        frame: DataFrame,
        *,
        key: Sequence[str],
        condition: str | None,
        clauses: Sequence[Clause],
        partition: Partition,
        warn: Callable[[str], None],
    ) -> dict[str, int]:
        """Merge rows by clauses in one commit, and return how many were inserted, updated and deleted.

        Rows match by `condition`, otherwise by `key`, otherwise by the relation's own key. Without a declared
        schema, the first rows decide the columns of the table. `warn` gets a text on columns that it lacks.
        """
        frame = into_partition(frame, self.partitions, partition)
        by = () if condition else key or self.update_key()
        merge = Merge(condition or same_key(by), clauses)
        own = merge.written_columns(frame.columns, [each.name for each in self.partitions])
        self.create(workspace, self.brought(frame.select(*map(name_sql, own))))
        if unused := merge.unused_columns(frame.columns, self.existing(workspace).names):
            them = "it" if len(unused) == 1 else "them"
            warn(
                f"{self.label} has no column {', '.join(unused)}: the merge leaves {them} out. "
                f"Declare {them} in the relation's schema, so that CREATE adds {them}, "
                f"or drop {them} from the mapping"
            )
        with self._committing(workspace):
            frame = with_unique_keys(frame, by, self.label, merge.inserted_sql) if by else frame
            return merge.run(workspace.spark, self.address(workspace), frame)

    def update_key(self) -> tuple[str, ...]:
        """Return the columns by which rows are updated.

        Raises:
            SpecError: Nothing declares them.
        """
        key = self.merge_key or (self.declared_schema.primary_key() if self.declared_schema else ())
        if not key:
            remedy = "Add a `mergeKey` to it, or a `primaryKey` to its schema."
            message = f"{self.label} has no key to update rows by"
            raise SpecError([Fault(message, remedy=remedy, subject=self.label)])
        return (*key, *(each.name for each in self.partitions if each.name not in key))

    def create(self, workspace: Workspace, brought: tuple[Field, ...] | None = None) -> None:
        """Create the table; without a declared schema, the first write does so, with the columns it brings.

        The same holds if the schema is that of a mapping that cannot be built yet.
        """
        fields = self._known_columns(workspace) or brought
        if observe_table(workspace.lake, self.address(workspace)).exists:
            return
        if fields is None:
            drop_entry_alone(workspace.lake, self.address(workspace))
        else:
            self._create(workspace, fields, place=self._place(workspace))

    def _create(
        self,
        workspace: Workspace,
        fields: Sequence[Field],
        *,
        place: str | None = None,
        replaces: bool = False,
    ) -> None:
        create_table(
            workspace.lake,
            self.address(workspace),
            fields,
            partition_columns=[each.name for each in self.partitions],
            properties=self.properties,
            comment=self.description,
            place=place,
            replaces=replaces,
        )

    def _known_columns(self, workspace: Workspace) -> tuple[Field, ...] | None:
        try:
            return self.declared(workspace)
        except TargetError:
            if self.declared_schema is None or not self.declared_schema.mappings():
                raise
            return None

    def truncate(self, workspace: Workspace, partition: Partition | None = None) -> None:
        """Delete the rows of the table, or of a partition, in one commit."""
        address = self.address(workspace)
        if not observe_table(workspace.lake, address).exists:
            return
        wanted = canonical_partition(self.partitions, partition or {})
        with self._committing(workspace):
            truncate_table(workspace.lake, address, partition_sql(self.partitions, wanted), wanted)

    def destroy(self, workspace: Workspace) -> None:
        """Remove the table with its rows and history."""
        drop_table(workspace.lake, self.address(workspace))
        if place := self._place(workspace):
            # The catalog keeps the files of a table at a declared location.
            drop_table(workspace.lake, Address(location=place))

    def replace(self, workspace: Workspace) -> None:
        """Replace the table by an empty one that is as declared, in one commit."""
        with self._committing(workspace):
            self._create(workspace, self.declared(workspace) or (), replaces=True)

    def alter(self, workspace: Workspace, steps: Sequence[MigrationStep]) -> None:
        """Run the statements of steps, each in a commit of its own."""
        with self._committing(workspace):
            alter_table(workspace.lake, self.address(workspace), steps)


@dataclass(frozen=True, slots=True)
class TableWrite:
    """One write to a table.

    Attributes:
        partition: Where all rows go; empty for the whole table.
        declared: The columns of the table; None means those it has, or those of the rows if they replace it.
        options: Options for Delta's writer.
        merge_key: Columns that identify a row in mode UPDATE.
    """

    relation: DeltaRelation
    workspace: Workspace
    partition: Partition
    declared: tuple[Field, ...] | None
    options: Mapping[str, str]
    merge_key: tuple[str, ...] = ()

    @property
    def address(self) -> Address:
        """The table."""
        return self.relation.address(self.workspace)

    @property
    def partitions(self) -> tuple[PartitionField, ...]:
        """The table's partition columns."""
        return self.relation.partitions

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
