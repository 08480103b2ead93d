"""Writing compared rows into a table: an append where all are new, else one MERGE by key, or all of it anew.

Source: `processing-strategies.md`, "Merge Strategy" and "Historic Strategy".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.lake.observation import delta_table, local_table_path
from lakewright.lake.table import remove_uncommitted
from lakewright.strategies.changes import ACTION, MATCH, Changes
from lakewright.strategies.table_properties import silver_properties
from lakewright.transform.sql import name_sql, text_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.strategies.work import Work

__all__ = ["Clause", "append", "creation", "merge"]

SMALL_SOURCE = 100_000
"""Rows to write that go to every worker, so that the target needn't be sorted."""

MANY = 0.3
"""Part of a table's rows above which files are written anew instead of marking rows in them."""

SMALL_TABLE = 50_000
"""Rows of a table that is always written anew, if its files are small too: a MERGE takes three queries."""

SMALL_SIZE = 8 << 20
"""Bytes up to which files are small."""

_FOLLOWED = ("delta.enableChangeDataFeed", "delta.enableRowTracking")
"""Properties of tables of which somebody wants to know what became of each row."""

_MARKING = "spark.databricks.delta.merge.deletionVectors.persistent"


@dataclass(frozen=True, slots=True)
class Clause:
    """What an action does to the target's row.

    Attributes:
        action: Its name.
        assignments: Column to SQL over `s` (the row written) and `t`; None gives all columns its values.
    """

    action: str
    assignments: Mapping[str, str] | None = None


def creation(work: Work, frame: DataFrame) -> Callable[[], None]:
    """Return the write that makes the table with these rows, its properties and partitions in one commit."""
    from pyspark.sql import functions

    writer = frame.writeTo(work.address.sql).using("delta")
    for key, value in silver_properties(work.entity, work.prepared).items():
        writer = writer.tableProperty(key, value)
    if work.prepared.partitions:
        writer = writer.partitionedBy(*(functions.col(name_sql(name)) for name in work.prepared.partitions))

    def create() -> None:
        remove_uncommitted(work.address)
        writer.create()

    return create


def append(work: Work, rows: DataFrame) -> Callable[[], None]:
    """Return the write that adds rows with the table's columns."""
    writer = rows.writeTo(work.address.sql)
    if work.fit.evolves:
        writer = writer.option("mergeSchema", "true")
    return writer.append


def merge(
    work: Work, changes: Changes, clauses: Sequence[Clause], *, target: str, inserts: int, matches: int
) -> Callable[[], None]:
    """Return the write that applies compared rows, by an append if none of them matches.

    Args:
        work: The work.
        changes: The rows.
        clauses: What the actions do to the target's row; the action `insert` adds one.
        target: Condition over the target's rows, as `t`, that can be matched.
        inserts: Rows with the action `insert`.
        matches: All other rows.
    """
    columns = [name_sql(name) for name in work.fit.columns]
    if not matches:
        return append(work, changes.rows.selectExpr(*columns))
    if _is_rewritten(work, matches):
        return _rewrite(work, changes, clauses, target)
    condition = f"t.{name_sql(work.system.key)} = s.{MATCH} and {target}"

    def write() -> None:
        work.session.conf.set(_MARKING, "false" if _is_mostly_replaced(work, matches) else "true")
        source = _hinted(changes.rows, inserts + matches)
        builder = delta_table(work.session, work.address).alias("t").merge(source.alias("s"), condition)
        for clause in clauses:
            if clause.action not in changes.actions:
                continue  # each makes the queries longer to compile, also where no row has its action
            assignments = clause.assignments
            if assignments is None:
                assignments = {column: f"s.{column}" for column in columns}
            builder = builder.whenMatchedUpdate(f"s.{ACTION} = {text_sql(clause.action)}", dict(assignments))
        if inserts:
            values = {column: f"s.{column}" for column in columns}
            builder = builder.whenNotMatchedInsert(f"s.{ACTION} = 'insert'", dict(values))
        if work.fit.evolves:
            builder = builder.withSchemaEvolution()
        builder.execute()

    return write


def _hinted(rows: DataFrame, count: int) -> DataFrame:
    from pyspark.sql import functions

    return functions.broadcast(rows) if count <= SMALL_SOURCE else rows


def _is_mostly_replaced(work: Work, matches: int) -> bool:
    """Whether so many rows are replaced that marking them costs more than writing their files anew."""
    rows = work.state.rows
    return rows is not None and matches > MANY * rows


def _is_rewritten(work: Work, matches: int) -> bool:
    """Whether the whole table is written anew, by one query.

    Not where its columns change or may not be null, or where somebody follows its rows; and only on this
    machine, where the lock that commits are made under keeps others from writing between our reading and our
    commit.
    """
    rows, size = work.state.rows, work.state.size
    is_plain = not work.fit.evolves and all(column.nullable for column in work.state.columns)
    if not is_plain or any(work.state.properties.get(name, "").lower() == "true" for name in _FOLLOWED):
        return False
    is_small = rows is not None and rows <= SMALL_TABLE and size is not None and size <= SMALL_SIZE
    is_worth_it = is_small or _is_mostly_replaced(work, matches)
    return is_worth_it and local_table_path(work.lake, work.address) is not None


def _rewrite(work: Work, changes: Changes, clauses: Sequence[Clause], target: str) -> Callable[[], None]:
    """Return the write that puts all rows in place of the table's: each beside its change, if it has one.

    A MERGE that replaces most of a table joins twice what is joined here once.
    """
    from pyspark.sql import functions

    key, match = name_sql(work.system.key), "_lakewright_matched"
    used = [clause for clause in clauses if clause.action in changes.actions]
    columns = [name_sql(name) for name in work.fit.columns]

    def write() -> None:
        rows = work.target().alias("t").selectExpr("*", f"if({target}, t.{key}, null) as {match}").alias("t")
        joined = rows.join(changes.rows.alias("s"), functions.expr(f"t.{match} = s.{MATCH}"), "full")
        written = joined.selectExpr(*(f"{_written_sql(column, used)} as {column}" for column in columns))
        # Whatever the user's settings say: a partition that no row is left in goes.
        writer = written.writeTo(work.address.sql).option("partitionOverwriteMode", "static")
        writer.overwrite(functions.lit(True))

    return write


def _written_sql(column: str, clauses: Sequence[Clause]) -> str:
    """The value of a column after the change beside its row."""
    cases = [f"when 'insert' then s.{column}"]
    for clause in clauses:
        value = f"s.{column}" if clause.assignments is None else clause.assignments.get(column)
        if value is not None:
            cases.append(f"when {text_sql(clause.action)} then {value}")
    return f"case s.{ACTION} {' '.join(cases)} else t.{column} end"
