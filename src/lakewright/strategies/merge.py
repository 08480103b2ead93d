"""Merge: new rows are added, changed ones replaced, deleted ones flagged, matched by their primary key.

Source: `processing-strategies.md`, "Merge Strategy"; revival, and deletes of unknown keys, are
Lakewright's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.spec.models.entity import Strategy
from lakewright.strategies.changes import HELD, MISSING, Action, Comparison, compare
from lakewright.strategies.delete_inference import reached, refuse_many, window
from lakewright.strategies.initial_load import fill
from lakewright.strategies.summary import Summary
from lakewright.strategies.upsert import Clause, merge
from lakewright.transform.sql import name_sql
from lakewright.transform.steps import instant_sql

if TYPE_CHECKING:
    from lakewright.strategies.work import Work

__all__ = ["apply_merge"]

_INSERT, _UPDATE = Action("insert", is_whole=True), Action("update", is_whole=True)
_TOUCH, _DELETE, _FLAG = Action("touch"), Action("delete"), Action("flag")


def apply_merge(work: Work) -> Summary:
    """Return the summary after the slice is merged into the table: one commit, or none if nothing changes.

    Raises:
        SchemaDriftError: The slice doesn't fit.
        DeleteBrakeError: Too many rows would be inferred as deleted.
    """
    if not work.state.exists or work.state.is_empty or not work.facts.records:
        return fill(work, Strategy.MERGE)
    changes = compare(work, _comparison(work))
    counts = changes.counts
    changed = counts["update"] + counts["revive"]
    refuse_many(work, counts.get(MISSING, 0), changes.window)
    summary = Summary(
        Strategy.MERGE,
        records_in_slice=work.facts.records,
        inserted=counts["insert"],
        updated=changed + counts["same"],
        deleted=counts["delete"] + counts["deleted"] + counts["unknown"],
        changed=changed,
        inferred_deletes=counts.get(MISSING, 0),
    ).checked()
    acting = sum(counts[label] for label in _actions(work) if label in counts)
    if not acting:
        return summary
    write = merge(
        work,
        changes,
        _clauses(work),
        target=reached(work, counts.get(MISSING, 0)),
        inserts=counts["insert"],
        matches=acting - counts["insert"],
    )
    return work.commit(summary, write)


def _comparison(work: Work) -> Comparison:
    hash_, deleted = name_sql(work.system.hash), name_sql(work.system.deleted)
    missing = window(work)
    return Comparison(
        target="true",
        labels={
            "unknown": f"{deleted} and {HELD.key} is null",
            "deleted": f"{deleted} and {HELD.is_deleted}",
            "delete": deleted,
            "insert": f"{HELD.key} is null",
            "revive": HELD.is_deleted,
            "same": f"{hash_} <=> {HELD.hash}",
            "update": "true",
        },
        actions=_actions(work),
        missing=None if missing is None else f"{missing} and not coalesce({deleted}, false)",
    )


def _actions(work: Work) -> dict[str, tuple[Action, ...]]:
    """What labels mean; rows that are the same, or deleted already, are only seen again."""
    seen_again = (
        {"same": (_TOUCH,), "deleted": (_DELETE,)} if work.entity.settings.last_seen == "column" else {}
    )
    return {
        "insert": (_INSERT,),
        "update": (_UPDATE,),
        "revive": (_UPDATE,),
        "delete": (_DELETE,),
        MISSING: (_FLAG,),
        **seen_again,
    }


def _clauses(work: Work) -> list[Clause]:
    deleted, seen = name_sql(work.system.deleted), name_sql(work.system.last_seen)
    at = instant_sql(work.at)
    return [
        Clause("update"),
        Clause("delete", {deleted: "true", seen: at}),
        Clause("flag", {deleted: "true"}),
        Clause("touch", {seen: at}),
    ]
