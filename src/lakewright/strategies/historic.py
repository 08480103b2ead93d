"""Historic: every change closes the current version of a record and opens a new one, in one commit.

Source: `processing-strategies.md`, "Historic Strategy (SCD Type 2)"; half-open intervals, deletes and order
in time are Lakewright's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import BackdatedError
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.changes import HELD, MATCH, MISSING, Action, Comparison, compare
from lakewright.strategies.delete_inference import reached, refuse_many, window
from lakewright.strategies.initial_load import fill
from lakewright.strategies.summary import Summary
from lakewright.strategies.upsert import Clause, merge
from lakewright.transform.sql import name_sql
from lakewright.transform.steps import instant_sql

if TYPE_CHECKING:
    from lakewright.strategies.changes import Changes
    from lakewright.strategies.work import Work

__all__ = ["apply_historic"]

_INSERT = Action("insert", matches=False, is_whole=True)
_CLOSE, _END = Action("close"), Action("end")

_ACTIONS = {
    "insert": (_INSERT,),
    "update": (_CLOSE, _INSERT),
    "delete": (_END,),
    MISSING: (_END,),
}


def apply_historic(work: Work) -> Summary:
    """Return the summary after the slice's changes are versions, in one commit or, if nothing changes, none.

    Raises:
        SchemaDriftError: The slice doesn't fit.
        BackdatedError: A version would end before it began, or begin before another of its record ended.
        DeleteBrakeError: Too many rows would be inferred as deleted.
    """
    if not work.state.exists or work.state.is_empty or not work.facts.records:
        return fill(work, Strategy.HISTORIC)
    changes = compare(work, _comparison(work))
    counts = changes.counts
    refuse_many(work, counts.get(MISSING, 0), changes.window)
    summary = Summary(
        Strategy.HISTORIC,
        records_in_slice=work.facts.records,
        inserted=counts["insert"],
        updated=counts["update"],
        deleted=counts.get(MISSING, 0),
        unchanged=counts["same"],
        changed=counts["update"],
        closed=counts["delete"] + counts["unknown"],
        inferred_deletes=counts.get(MISSING, 0),
    ).checked()
    matches = counts["update"] + counts["delete"] + counts.get(MISSING, 0)
    inserts = counts["insert"] + counts["update"]
    if not matches + inserts:
        return summary
    if work.permissions.allow_backdated:
        _refuse_disorder(work, changes)
    current = f"t.{name_sql(work.system.valid_to)} is null"
    reach = reached(work, counts.get(MISSING, 0))
    write = merge(
        work, changes, _clauses(work), target=f"{current} and {reach}", inserts=inserts, matches=matches
    )
    return work.commit(summary, write)


def _comparison(work: Work) -> Comparison:
    system = work.system
    hash_, deleted = name_sql(system.hash), name_sql(system.deleted)
    current = f"{name_sql(system.valid_to)} is null"
    missing = window(work)
    return Comparison(
        target=current,
        labels={
            "unknown": f"{deleted} and {HELD.key} is null",
            "delete": deleted,
            "insert": f"{HELD.key} is null",
            "same": f"{hash_} <=> {HELD.hash}",
            "update": "true",
        },
        actions=_ACTIONS,
        missing=None if missing is None else f"{missing} and {current}",
    )


def _clauses(work: Work) -> list[Clause]:
    system = work.system
    closed = {name_sql(system.valid_to): instant_sql(work.at), name_sql(system.is_current): "false"}
    return [Clause("close", closed), Clause("end", {**closed, name_sql(system.deleted): "true"})]


def _refuse_disorder(work: Work, changes: Changes) -> None:
    """Refuse a processing time that isn't later than everything that is known of a record it concerns."""
    from pyspark.sql import functions

    system = work.system
    key, start, end = (name_sql(name) for name in (system.key, system.valid_from, system.valid_to))
    touched = changes.rows.selectExpr(f"coalesce({MATCH}, {key}) as {HELD.key}").distinct()
    later = work.target().where(f"greatest({start}, {end}) >= {instant_sql(work.at)}")
    found = later.join(touched, functions.expr(f"{key} = {HELD.key}"), "left_semi")
    count = found.select(system.key).distinct().count()
    if count:
        raise BackdatedError(
            f"{count} records have versions that begin or end at or after {work.at.isoformat()}; "
            "a version from then on would overlap them",
            remedy="Give a later processing time.",
            details={"records": count},
        )
