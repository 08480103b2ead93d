"""Writes to the silver table: create it, append to it, merge changes by key, or rewrite it.

Source: `processing-strategies.md`, "Merge Strategy" and "Historic Strategy"; when the table is rewritten is
explained in docs/decisions/010-rewriting-tables.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.lake.observation import delta_table, local_table_path
from lakewright.lake.table import drop_entry_alone, remove_uncommitted
from lakewright.schema.sql import name_sql, text_sql
from lakewright.strategies.changes import ACTION, MATCH, Changes
from lakewright.strategies.table_properties import silver_properties

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.strategies.slice_load import SliceLoad

__all__ = ["Clause", "append", "create", "key_condition", "sequence_assignment", "write_changes"]

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


@dataclass(frozen=True, slots=True)
class Clause:
    """The effect of an action on the table's row.

    Attributes:
        action: Name of the action.
        assignments: Column to SQL over `s` (the row to write) and `t`; None assigns all columns of `s`.
    """

    action: str
    assignments: Mapping[str, str] | None = None


def sequence_assignment(load: SliceLoad) -> dict[str, str]:
    """Return the assignment that gives a deleted row its delete's value of `sequence_by`, if there is one."""
    name = load.sequence
    return {} if name is None else {name_sql(name): f"s.{name_sql(name)}"}


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
    writer = rows.writeTo(load.address.sql)
    if load.fit.evolves:
        writer = writer.option("mergeSchema", "true")
    return writer.append


def key_condition(changes: Changes, first: str | None = None) -> str:
    """Return the condition that a row of the table, `t`, is the one that a row to write, `s`, is about.

    Args:
        changes: The rows to write.
        first: SQL of the first key of the table's row; by default the column itself.
    """
    own, *others = map(name_sql, changes.keys)
    return " and ".join((f"{first or f't.{own}'} = s.{MATCH}", *(f"t.{name} = s.{name}" for name in others)))


def write_changes(
    load: SliceLoad, changes: Changes, clauses: Sequence[Clause], *, target: str, inserts: int, matches: int
) -> Callable[[], None]:
    """Return the write that applies changes: an append if no row matches, else a rewrite or a MERGE.

    Args:
        load: The slice and its table.
        changes: The changes.
        clauses: The effects of the actions on the table's row; the action `insert` inserts one.
        target: Condition on the rows of the table, as `t`, that can be matched.
        inserts: Number of rows with the action `insert`.
        matches: Number of all other rows.
    """
    columns = [name_sql(name) for name in load.fit.columns]
    if not matches:
        return append(load, changes.rows.selectExpr(*columns))
    # Each clause makes the queries longer to compile, even if no row has its action.
    used = [clause for clause in clauses if clause.action in changes.actions]
    if _is_rewritten(load, matches):
        return _rewrite(load, changes, used, target)
    condition = f"{key_condition(changes)} and {target}"
    whole_row = {column: f"s.{column}" for column in columns}

    def write() -> None:
        load.session.conf.set(_DELETION_VECTORS, "false" if _is_mostly_changed(load, matches) else "true")
        source = _with_hint(changes.rows, inserts + matches)
        builder = delta_table(load.session, load.address).alias("t").merge(source.alias("s"), condition)
        for clause in used:
            assignments = whole_row if clause.assignments is None else clause.assignments
            builder = builder.whenMatchedUpdate(f"s.{ACTION} = {text_sql(clause.action)}", dict(assignments))
        if inserts:
            builder = builder.whenNotMatchedInsert(f"s.{ACTION} = 'insert'", dict(whole_row))
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


def _rewrite(load: SliceLoad, changes: Changes, clauses: Sequence[Clause], target: str) -> Callable[[], None]:
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
        written = joined.selectExpr(*(f"{_written_sql(column, clauses)} as {column}" for column in columns))
        # Static, whatever the user's settings say: a partition without remaining rows must be removed.
        writer = written.writeTo(load.address.sql).option("partitionOverwriteMode", "static")
        writer.overwrite(functions.lit(True))

    return write


def _written_sql(column: str, clauses: Sequence[Clause]) -> str:
    """Return the SQL of a column's value after the change, if there is one, was applied to the row."""
    cases = [f"when 'insert' then s.{column}"]
    for clause in clauses:
        value = f"s.{column}" if clause.assignments is None else clause.assignments.get(column)
        if value is not None:
            cases.append(f"when {text_sql(clause.action)} then {value}")
    return f"case s.{ACTION} {' '.join(cases)} else t.{column} end"
