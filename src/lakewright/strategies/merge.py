"""The Merge strategy: new records are inserted, changed ones updated, deleted ones flagged, matched by key.

Source: `processing-strategies.md`, "Merge Strategy"; that deleted records can come back, and that deletes of
unknown keys are ignored, or with `sequence_by` kept as tombstones, is Lakewright's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.schema.sql import name_sql
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.changes import MISSING, OUTDATED, TARGET, Action, Comparison, compare
from lakewright.strategies.delete_inference import check_delete_brake, written_condition
from lakewright.strategies.full import initial_load
from lakewright.strategies.summary import Summary
from lakewright.strategies.write import Clause, sequence_assignment, write_changes
from lakewright.transform.steps import instant_sql

if TYPE_CHECKING:
    from lakewright.strategies.slice_load import SliceLoad

__all__ = ["apply_merge"]

_INSERT, _UPDATE = Action("insert", is_whole=True), Action("update", is_whole=True)
_TOUCH, _DELETE, _FLAG = Action("touch"), Action("delete"), Action("flag")


def apply_merge(load: SliceLoad) -> Summary:
    """Merge the slice into the table in one commit, or in none if nothing changes; return the summary.

    Raises:
        SchemaDriftError: The slice does not fit the table.
        DeleteBrakeError: Delete inference would delete too large a share of the window.
    """
    if load.is_first or not load.statistics.records:
        return initial_load(load, Strategy.MERGE)
    changes = compare(load, _comparison(load))
    check_delete_brake(load, changes.inferred_deletes, changes.expected)
    counts = changes.counts
    changed = counts["update"] + counts["revive"]
    summary = load.summary(
        Strategy.MERGE,
        inserted=counts["insert"],
        updated=changed + counts["same"],
        deleted=counts["delete"] + counts["deleted"] + counts["unknown"],
        changed=changed,
        without_row=counts["unknown"],
        inferred_deletes=changes.inferred_deletes,
        outdated=counts.get(OUTDATED, 0),
    ).checked()
    inserts = sum(counts[label] for label, actions in _actions(load).items() if _INSERT in actions)
    matches = changes.inferred_deletes + sum(
        counts[label]
        for label, actions in _actions(load).items()
        if label in counts and _INSERT not in actions
    )
    if not matches + inserts:
        return summary
    write = write_changes(
        load,
        changes,
        _clauses(load),
        target=written_condition(load, changes.inferred_deletes),
        inserts=inserts,
        matches=matches,
    )
    return load.commit(summary, write)


def _comparison(load: SliceLoad) -> Comparison:
    hash_, deleted = name_sql(load.system.hash), name_sql(load.system.deleted)
    return Comparison(
        target="true",
        labels={
            "unknown": f"{deleted} and {TARGET.key} is null",
            "deleted": f"{deleted} and {TARGET.is_deleted}{_and_not_later(load)}",
            "delete": deleted,
            "insert": f"{TARGET.key} is null",
            "revive": TARGET.is_deleted,
            "same": f"{hash_} <=> {TARGET.hash}",
            "update": "true",
        },
        actions=_actions(load),
    )


def _and_not_later(load: SliceLoad) -> str:
    """Return the further condition of a delete that changes nothing: its value of `sequence_by` is known."""
    return f" and {name_sql(load.sequence)} <=> {TARGET.sequence}" if load.sequence else ""


def _actions(load: SliceLoad) -> dict[str, tuple[Action, ...]]:
    """Return the actions of labels; rows that are equal, or deleted already, at most get a new `lastSeen`."""
    seen_again = (
        {"same": (_TOUCH,), "deleted": (_DELETE,)} if load.entity.settings.last_seen == "column" else {}
    )
    return {
        "insert": (_INSERT,),
        **({"unknown": (_INSERT,)} if load.keeps_tombstones else {}),
        "update": (_UPDATE,),
        "revive": (_UPDATE,),
        "delete": (_DELETE,),
        MISSING: (_FLAG,),
        **seen_again,
    }


def _clauses(load: SliceLoad) -> list[Clause]:
    deleted, seen = name_sql(load.system.deleted), name_sql(load.system.last_seen)
    at = instant_sql(load.request.at)
    return [
        Clause("update"),
        Clause("delete", {deleted: "true", seen: at, **sequence_assignment(load)}),
        Clause("flag", {deleted: "true", **sequence_assignment(load)}),
        Clause("touch", {seen: at}),
    ]
