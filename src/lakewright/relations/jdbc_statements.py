"""Statements that change a table of a database: its migration, and writes.

Rows are written to a staging table first, then moved to the table in one transaction. Readers see the change
when the transaction commits; until then they neither wait nor see part of it. Rows are therefore deleted and
inserted. Emptying the table would be faster but make readers wait, and replacing it by another table would
lose privileges, views and foreign keys.

Source: the lifecycle's rules, "CREATE and migration".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from lakewright.connections.database import DatabaseTable, Dialect, Index, Statements, TableName, accept
from lakewright.errors import LakewrightError, LeaseLost, SpecError, TargetError
from lakewright.lake.measures import counted
from lakewright.lake.partition import Partition
from lakewright.lake.table import MigrationStep
from lakewright.relations.migration import MigrationPolicy, Shape, find_steps
from lakewright.relations.relation import OutputMode
from lakewright.schema.fits import fits
from lakewright.schema.types import Chars, Decimal, Scalar, Type
from lakewright.spec.models.fields import Field, PartitionField

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["StagedRows", "find_table_steps", "has_place", "staging_name"]


def find_table_steps(
    dialect: Dialect, table: TableName, present: DatabaseTable, wanted: DatabaseTable, policy: MigrationPolicy
) -> tuple[MigrationStep, ...]:
    """Return the differences as steps, in an order in which they can be executed."""
    is_strict = policy is MigrationPolicy.STRICT
    # An undeclared key may have been created on purpose; only a strict policy drops it.
    key = wanted.primary_key or (() if is_strict else present.primary_key)
    has_other_key = sorted(_lower(key)) != sorted(_lower(present.primary_key))
    columns = (
        field.model_copy(update={"nullable": field.nullable and field.name.lower() not in _lower(key)})
        for field in wanted.columns
    )
    statements = _statements(dialect, table)
    return (
        *(_drop_key(dialect, table, present) if has_other_key else ()),
        *find_steps(Shape(present.columns), Shape(tuple(columns)), policy, statements),
        *(_add_key(dialect, table, key) if has_other_key else ()),
        *_indexes(dialect, table, present, wanted.indexes or (), is_strict=is_strict),
    )


def _statements(dialect: Dialect, table: TableName) -> Statements:
    own = dialect.statements(table)

    def retype(actual: Field, field: Field) -> str | None:
        is_possible = _is_alterable(actual.type, dialect.stored(field.type))
        return own.retype(actual, field) if is_possible else None

    return replace(own, retype=retype, holds=has_place)


def has_place(narrow: Type, wide: Type) -> bool:
    """Return whether the second type can store every value of the first, including the lengths of text.

    Example:
        >>> has_place(Chars(3), Chars(5)), has_place(Chars(5), Chars(3))
        (True, False)
    """
    if isinstance(wide, Chars):
        is_padded = wide.is_fixed and narrow != wide
        return isinstance(narrow, Chars) and narrow.length <= wide.length and not is_padded
    return fits(narrow, wide)


def _is_alterable(actual: Type, wanted: Type) -> bool:
    """Return whether a database can convert every value: to a type with place for it, or to text."""
    is_plain = isinstance(actual, (Chars, Decimal)) or (
        isinstance(actual, Scalar) and actual != Scalar("binary")
    )
    return has_place(actual, wanted) or (wanted == Scalar("string") and is_plain)


def _drop_key(dialect: Dialect, table: TableName, present: DatabaseTable) -> list[MigrationStep]:
    dropped = dialect.replace_key(table, present.key_name, ()) if present.primary_key else None
    return [MigrationStep("drop the primary key", "; ".join(dropped))] if dropped else []


def _add_key(dialect: Dialect, table: TableName, columns: Sequence[str]) -> list[MigrationStep]:
    added = dialect.replace_key(table, None, columns)
    return [MigrationStep(f"set the primary key to {', '.join(columns)}", "; ".join(added))] if added else []


def _indexes(
    dialect: Dialect,
    table: TableName,
    present: DatabaseTable,
    wanted: Sequence[Index],
    *,
    is_strict: bool,
) -> Iterator[MigrationStep]:
    if present.indexes is None:
        return
    known = {index.name.lower(): index for index in present.indexes}
    names = set(_lower([index.name for index in wanted]))
    for index in present.indexes:
        if is_strict and index.name.lower() not in names and not index.is_constraint:
            yield MigrationStep(f"drop index {index.name}", dialect.drop_index(table, index.name))
    for index in wanted:
        former = known.get(index.name.lower())
        if former is None:
            yield MigrationStep(f"create index {index.name}", dialect.create_index(table, index))
        elif not former.same(index):
            drop, create = dialect.drop_index(table, former.name), dialect.create_index(table, index)
            yield MigrationStep(f"recreate index {index.name}", f"{drop}; {create}")


def _lower(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]


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
