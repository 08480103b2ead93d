"""The Historic strategy (SCD Type 2): a change closes a record's current version and opens a new one.

Both happen in one commit.

Source: `processing-strategies.md`, "Historic Strategy (SCD Type 2)"; half-open intervals, the treatment of
deletes and the checks of order in time are Lakewright's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import BackdatedError
from lakewright.schema.sql import name_sql
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.changes import (
    MATCH,
    MISSING,
    OUTDATED,
    TARGET,
    Action,
    Changes,
    Comparison,
    compare,
)
from lakewright.strategies.delete_inference import check_delete_brake, written_condition
from lakewright.strategies.full import initial_load
from lakewright.strategies.summary import Summary
from lakewright.strategies.write import Clause, key_condition, sequence_assignment, write_changes
from lakewright.transform.steps import instant_sql

if TYPE_CHECKING:
    from lakewright.strategies.slice_load import SliceLoad

__all__ = ["apply_historic"]

_INSERT = Action("insert", matches=False, is_whole=True)
_CLOSE, _DELETE = Action("close"), Action("delete")

_ACTIONS = {
    "insert": (_INSERT,),
    "update": (_CLOSE, _INSERT),
    "delete": (_DELETE,),
    MISSING: (_DELETE,),
}


def apply_historic(load: SliceLoad) -> Summary:
    """Write the slice's changes as versions in one commit, or in none if nothing changes; return the summary.

    Raises:
        SchemaDriftError: The slice does not fit the table.
        BackdatedError: A version would end before it begins, or begin before another version of its record
            ends.
        DeleteBrakeError: Delete inference would close too large a share of the window.
    """
    if load.is_first or not load.statistics.records:
        return initial_load(load, Strategy.HISTORIC)
    changes = compare(load, _comparison(load))
    check_delete_brake(load, changes.inferred_deletes, changes.expected)
    counts, inferred = changes.counts, changes.inferred_deletes
    summary = load.summary(
        Strategy.HISTORIC,
        inserted=counts["insert"],
        updated=counts["update"],
        deleted=inferred,
        unchanged=counts["same"],
        changed=counts["update"],
        closed=counts["delete"] + counts["unknown"],
        without_row=counts["unknown"],
        inferred_deletes=inferred,
        outdated=counts.get(OUTDATED, 0),
    ).checked()
    matches = counts["update"] + counts["delete"] + inferred
    inserts = counts["insert"] + counts["update"]
    if not matches + inserts:
        return summary
    if load.request.permissions.allow_backdated:
        _check_order(load, changes)
    # The end is compared, not the flag: Delta skips files by counts of nulls, but not by booleans.
    current = f"t.{name_sql(load.system.valid_to)} is null"
    target = f"{current} and {written_condition(load, inferred)}"
    write = write_changes(load, changes, _clauses(load), target=target, inserts=inserts, matches=matches)
    return load.commit(summary, write)


def _comparison(load: SliceLoad) -> Comparison:
    system = load.system
    hash_, deleted = name_sql(system.hash), name_sql(system.deleted)
    # With `sequence_by`, a record whose last version was closed by a delete has that version as its state.
    is_absent = f"({TARGET.key} is null or {TARGET.is_deleted})" if load.sequence else f"{TARGET.key} is null"
    return Comparison(
        target=f"{name_sql(system.valid_to)} is null",
        closed=deleted,
        labels={
            "unknown": f"{deleted} and {is_absent}",
            "delete": deleted,
            "insert": is_absent,
            "same": f"{hash_} <=> {TARGET.hash}",
            "update": "true",
        },
        actions=_ACTIONS,
    )


def _clauses(load: SliceLoad) -> list[Clause]:
    system = load.system
    closed = {name_sql(system.valid_to): instant_sql(load.request.at), name_sql(system.is_current): "false"}
    deleted = {**closed, name_sql(system.deleted): "true", **sequence_assignment(load)}
    return [Clause("close", closed), Clause("delete", deleted)]


def _check_order(load: SliceLoad, changes: Changes) -> None:
    """Raise `BackdatedError` unless the processing time is later than all versions of the changed records."""
    from pyspark.sql import functions

    system, at = load.system, load.request.at
    start, end = name_sql(system.valid_from), name_sql(system.valid_to)
    key, *others = map(name_sql, changes.keys)
    changed = changes.rows.selectExpr(f"coalesce({MATCH}, {key}) as {MATCH}", *others).distinct()
    later = load.target().where(f"greatest({start}, {end}) >= {instant_sql(at)}")
    found = later.alias("t").join(changed.alias("s"), functions.expr(key_condition(changes)), "left_semi")
    count = found.select(system.key).distinct().count()
    if count:
        has = "record has" if count == 1 else "records have"
        raise BackdatedError(
            f"{count} {has} versions that begin or end at or after {at.isoformat()}; "
            "a version from then on would overlap them",
            remedy="Give a later processing time.",
            details={"records": count},
        )
