"""Writes to database tables: to a staging table first, then to the table in one transaction.

Readers see the change when the transaction commits; until then they neither wait nor see part of it. Rows are
therefore deleted and inserted. Emptying the table would be faster but make readers wait, and replacing it by
another table would lose privileges, views and foreign keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from lakewright.connections.database import TableName, accept
from lakewright.connections.dialect import Dialect
from lakewright.errors import LakewrightError, LeaseLost, SpecError, TargetError
from lakewright.lake.measures import counted
from lakewright.lake.partition import Partition
from lakewright.relations.relation import OutputMode
from lakewright.spec.models.fields import Field, PartitionField

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["StagedRows", "staging_name"]

_LONGEST = 63
"""Maximum length of a name in PostgreSQL; other databases allow more."""


def staging_name(table: TableName, partition: Partition) -> TableName:
    """Return the name of a partition's staging table; partitions can be written in parallel."""
    digest = hashlib.sha256(repr((table.name, sorted(partition.items()))).encode()).hexdigest()[:8]
    return table.beside(f"{table.name[: _LONGEST - 16]}_staged_{digest}")


@dataclass(frozen=True, slots=True)
class StagedRows:
    """One write to `table` through `staged`.

    Attributes:
        fields: The columns to write.
        key: Columns that identify a row in mode UPDATE.
        ready: Raises if the rows may no longer be moved to the table.
    """

    dialect: Dialect
    table: TableName
    staged: TableName
    fields: tuple[Field, ...]
    partitions: tuple[PartitionField, ...] = ()
    key: tuple[str, ...] = ()
    ready: Callable[[], None] = lambda: None

    def write(
        self, frame: DataFrame, options: dict[str, str], *, partition: Partition, mode: OutputMode
    ) -> int:
        """Write the rows and return how many there were."""
        database = self.dialect.database
        database.run(self.dialect.stage_sql(self.table, self.staged, self.fields))
        try:
            rows = self._stage(frame, options)
            self.ready()
            *before, last = self._statements(partition, mode)
            statements = [*before, last, self.dialect.drop(self.staged)]
            check = accept if mode is OutputMode.UPDATE else partial(self._see, len(before), rows)
            database.run(statements, check=check)
        except LeaseLost:
            # The staging table may belong to another run by now.
            raise
        except BaseException:
            self._forget()
            raise
        return rows

    def _see(self, position: int, rows: int, changed: Sequence[int]) -> None:
        """Raise `LeaseLost` unless exactly the rows that this write staged were inserted."""
        if changed[position] != rows:
            raise LeaseLost(
                f"{self.table}: its staging table had {changed[position]} rows instead of the {rows} written",
                remedy="Another run writes the same table. Make sure that only one does, and run again.",
            )

    def _forget(self) -> None:
        # The next write removes it too; report the first error instead of this one.
        with suppress(LakewrightError):
            self.dialect.database.run([self.dialect.drop(self.staged)])

    def _stage(self, frame: DataFrame, options: dict[str, str]) -> int:
        rows, count = counted(frame)
        writer = rows.write.format("jdbc").options(**options)
        writer.option("dbtable", self.dialect.table(self.staged)).mode("append").save()
        return count()

    def _statements(self, partition: Partition, mode: OutputMode) -> Sequence[str]:
        columns = [field.name for field in self.fields]
        insert = self.dialect.insert_from(self.table, self.staged, columns)
        if mode is OutputMode.APPEND:
            return [insert]
        if mode is OutputMode.UPDATE:
            return self._update(columns)
        open_columns = [each.name for each in self.partitions if each.name not in partition]
        if mode is OutputMode.OVERWRITE_DYNAMIC and open_columns:
            divided_by = [each.name for each in self.partitions]
            return [self.dialect.delete_met(self.table, self.staged, divided_by), insert]
        condition = self.dialect.condition(self.partitions, partition)
        return [self.dialect.delete(self.table, condition), insert]

    def _update(self, columns: Sequence[str]) -> Sequence[str]:
        if not self.key:
            raise SpecError.of(
                f"rows of {self.table} cannot be updated: no columns are declared that identify a row",
                remedy="Add a mergeKey or a primaryKey to the relation.",
            )
        self._refuse_duplicates()
        return [
            self.dialect.update_from(self.table, self.staged, columns, self.key),
            self.dialect.insert_from(self.table, self.staged, columns, self.key),
        ]

    def _refuse_duplicates(self) -> None:
        found = self.dialect.database.query(self.dialect.repeated(self.staged, self.key), most=1)
        if found:
            values = ", ".join(f"{name}={value}" for name, value in zip(self.key, found[0], strict=True))
            raise TargetError(
                f"{self.table}: several rows to write have the same key, {values}",
                remedy="Let the mapping return one row per key, with a deduplicate or latest mapping.",
            )
