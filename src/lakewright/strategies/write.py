"""Writes to the silver table: create it, append to it, merge changes by key, or rewrite it.

Source: `processing-strategies.md`, "Merge Strategy" and "Historic Strategy"; when the table is rewritten is
explained in docs/decisions/010-rewriting-tables.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lakewright.lake.observation import delta_table, local_table_path
from lakewright.lake.table import drop_entry_alone, remove_uncommitted
from lakewright.schema.sql import name_sql, text_sql
from lakewright.strategies.changes import ACTION, MATCH, Changes
from lakewright.strategies.delete_inference import written_condition
from lakewright.strategies.rules import INSERT, PATCH, UPDATE, patch_of
from lakewright.strategies.table_properties import silver_properties

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriterV2

    from lakewright.strategies.slice_load import SliceLoad

__all__ = ["append", "create", "key_condition", "overwrite", "write_changes"]

SMALL_SOURCE = 100_000
"""Number of rows up to which changes are broadcast, so that the table is not sorted; not measured."""

REWRITTEN_SHARE = 0.3
"""Share of a table's rows above which rewriting files costs less than marking rows in them.

docs/benchmarks.md brackets it: with 10 % changed a MERGE writes a tenth of the bytes; with 100 % a rewrite
takes 17.9 s of CPU time and a MERGE by hand 19.9 s. The point between them was chosen, not measured.
"""

SMALL_TABLE = 50_000
"""Rows up to which a table is always rewritten: each of the three queries of a MERGE costs more.

docs/benchmarks.md compares a slice on a table of 30,000 rows: 3.2 s rewritten, 3.4 s with a MERGE by hand.
"""

SMALL_TABLE_BYTES = 8 << 20
"""Size in bytes up to which this applies: the rows of wide tables are not cheap to write again."""

_ROW_TRACKING = ("delta.enableChangeDataFeed", "delta.enableRowTracking")
"""Properties of tables whose readers follow single rows; a rewrite would report every row as changed."""

_DELETION_VECTORS = "spark.databricks.delta.merge.deletionVectors.persistent"


def create(load: SliceLoad, rows: DataFrame) -> Callable[[], None]:
    """Return the write that creates the table with these rows, in one commit."""
    from pyspark.sql import functions

    writer = _described(load, rows).writeTo(load.address.sql).using("delta")
    for key, value in {**silver_properties(load.entity, load.prepared), **load.properties}.items():
        writer = writer.tableProperty(key, value)
    if load.prepared.partitions:
        writer = writer.partitionedBy(*(functions.col(name_sql(name)) for name in load.prepared.partitions))

    def write() -> None:
        remove_uncommitted(load.address)
        drop_entry_alone(load.lake, load.address)
        writer.create()

    return write


def _described(load: SliceLoad, rows: DataFrame) -> DataFrame:
    """Return rows whose columns have the descriptions that the entity declares, as comments."""
    present = {name.lower(): name for name in rows.columns}
    for name, text in load.entity.descriptions.items():
        if name.lower() in present:
            rows = rows.withMetadata(present[name.lower()], {"comment": text})
    return rows


def append(load: SliceLoad, rows: DataFrame) -> Callable[[], None]:
    """Return the write that appends rows with the table's columns."""
    return _evolving(load, rows).append


def overwrite(load: SliceLoad, rows: DataFrame) -> Callable[[], None]:
    """Return the write that replaces the partitions of these rows, or all rows of an unpartitioned table."""
    return _evolving(load, rows).overwritePartitions


def _evolving(load: SliceLoad, rows: DataFrame) -> DataFrameWriterV2:
    writer = rows.writeTo(load.address.sql)
    return writer.option("mergeSchema", "true") if load.fit.evolves else writer


def key_condition(changes: Changes, first: str | None = None) -> str:
    """Return the condition that a row of the table, `t`, is the one that a row to write, `s`, is about.

    Args:
        changes: The rows to write.
        first: SQL of the first key of the table's row; by default the column itself.
    """
    own, *others = map(name_sql, changes.keys)
    return " and ".join((f"{first or f't.{own}'} = s.{MATCH}", *(f"t.{name} = s.{name}" for name in others)))


def write_changes(load: SliceLoad, changes: Changes) -> Callable[[], None]:
    """Return the write that applies changes: an append if no row matches, else a rewrite or a MERGE."""
    columns = [name_sql(name) for name in load.fit.columns]
    inserts = changes.actions.get(INSERT, 0)
    matches = sum(changes.actions.values()) - inserts
    if not matches:
        return append(load, changes.rows.selectExpr(*columns))
    whole_row = {column: f"s.{column}" for column in columns}
    # Each action makes the queries longer to compile, even if no row has it.
    effects = {UPDATE: whole_row, PATCH: patch_of(load)}
    effects = {action: effects[action] for action in effects if action in changes.actions}
    # The end is compared, not the flag: Delta skips files by counts of nulls, but not by booleans.
    target = f"{load.open_condition('t')} and {written_condition(load, changes.inferred_deletes)}"
    if _is_rewritten(load, matches):
        return _rewrite(load, changes, effects, target)
    condition = f"{key_condition(changes)} and {target}"

    def write() -> None:
        load.session.conf.set(_DELETION_VECTORS, "false" if _is_mostly_changed(load, matches) else "true")
        source = _with_hint(changes.rows, inserts + matches)
        builder = delta_table(load.session, load.address).alias("t").merge(source.alias("s"), condition)
        for action, assignments in effects.items():
            builder = builder.whenMatchedUpdate(f"s.{ACTION} = {text_sql(action)}", dict(assignments))
        if inserts:
            builder = builder.whenNotMatchedInsert(f"s.{ACTION} = {text_sql(INSERT)}", dict(whole_row))
        if load.fit.evolves:
            builder = builder.withSchemaEvolution()
        builder.execute()

    return write


def _with_hint(rows: DataFrame, count: int) -> DataFrame:
    from pyspark.sql import functions

    return functions.broadcast(rows) if count <= SMALL_SOURCE else rows


def _is_mostly_changed(load: SliceLoad, matches: int) -> bool:
    """Return whether so many rows change that marking them costs more than rewriting their files."""
    rows = load.state.rows
    return rows is not None and matches > REWRITTEN_SHARE * rows


def _is_rewritten(load: SliceLoad, matches: int) -> bool:
    """Return whether the whole table is rewritten by one query.

    A table is not rewritten if the commit changes its columns, if a column is not nullable, or if its readers
    follow single rows. Only a table on this machine is rewritten, where the lock that guards commits keeps
    other writers out between the read and the commit: an overwrite replaces all rows of the table at that
    time.
    """
    rows, size, properties = load.state.rows, load.state.size, load.state.properties
    is_plain = not load.fit.evolves and all(column.nullable for column in load.state.columns)
    if not is_plain or any(properties.get(name, "").lower() == "true" for name in _ROW_TRACKING):
        return False
    is_small = rows is not None and rows <= SMALL_TABLE and size is not None and size <= SMALL_TABLE_BYTES
    is_worth_it = is_small or _is_mostly_changed(load, matches)
    return is_worth_it and local_table_path(load.lake, load.address) is not None


def _rewrite(
    load: SliceLoad, changes: Changes, effects: Mapping[str, Mapping[str, str]], target: str
) -> Callable[[], None]:
    """Return the write that replaces all rows of the table by one full join of its rows with their changes.

    A MERGE that changes most of a table joins twice.
    """
    from pyspark.sql import functions

    key, match = name_sql(changes.keys[0]), "_lakewright_matched"
    columns = [name_sql(name) for name in load.fit.columns]

    def write() -> None:
        rows = load.target().alias("t").selectExpr("*", f"if({target}, t.{key}, null) as {match}").alias("t")
        joined = rows.join(
            changes.rows.alias("s"), functions.expr(key_condition(changes, f"t.{match}")), "full"
        )
        written = joined.selectExpr(*(f"{_written_sql(column, effects)} as {column}" for column in columns))
        # Static, whatever the user's settings say: a partition without remaining rows must be removed.
        writer = written.writeTo(load.address.sql).option("partitionOverwriteMode", "static")
        writer.overwrite(functions.lit(True))

    return write


def _written_sql(column: str, effects: Mapping[str, Mapping[str, str]]) -> str:
    """Return the SQL of a column's value after the change, if there is one, was applied to the row."""
    cases = [f"when {text_sql(INSERT)} then s.{column}"]
    for action, assignments in effects.items():
        value = next((sql for name, sql in assignments.items() if name.lower() == column.lower()), None)
        if value is not None:
            cases.append(f"when {text_sql(action)} then {value}")
    return f"case s.{ACTION} {' '.join(cases)} else t.{column} end"
