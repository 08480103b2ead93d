"""Writing compared rows into a table: an append where all are new, else one MERGE by key.

Source: `processing-strategies.md`, "Merge Strategy" and "Historic Strategy".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.lake.table import delta_table
from lakewright.strategies.changes import ACTION, MATCH, Changes
from lakewright.transform.sql import name_sql, text_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.strategies.work import Work

__all__ = ["Clause", "append", "merge"]

SMALL_SOURCE = 100_000
"""Rows to write that go to every worker, so that the target needn't be sorted."""

MANY = 0.3
"""Part of a table's rows above which files are written anew instead of marking rows in them."""

SMALL_TABLE = 50_000
"""Rows of a table whose files are always written anew: marking takes one more query."""

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
    condition = f"t.{name_sql(work.system.key)} = s.{MATCH} and {target}"

    def write() -> None:
        _set_marking(work, matches)
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


def _set_marking(work: Work, matches: int) -> None:
    """Mark replaced rows in their files, unless writing the files anew costs less."""
    rows = work.state.rows
    is_cheap = rows is not None and (rows <= SMALL_TABLE or matches > MANY * rows)
    work.session.conf.set(_MARKING, "false" if is_cheap else "true")
