"""The first rows of a table, and slices without rows.

Source: `processing-strategies.md`, "Behavior" (first run: falls back to Full); that a record which arrives
deleted isn't inserted is Lakewright's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.spec.models.entity import Strategy
from lakewright.strategies.summary import Summary
from lakewright.strategies.upsert import append, creation
from lakewright.transform.sql import name_sql

if TYPE_CHECKING:
    from lakewright.strategies.work import Work

__all__ = ["fill"]


def fill(work: Work, strategy: Strategy) -> Summary:
    """Return the summary after the slice's rows are the first in the table, which is made if there is none.

    A slice without rows makes the table too, but changes nothing about one that is there.
    """
    deleted = work.facts.arrived_deleted
    summary = Summary(
        strategy,
        records_in_slice=work.facts.records,
        inserted=work.facts.records - deleted,
        deleted=deleted if strategy is Strategy.MERGE else 0,
        closed=deleted if strategy is Strategy.HISTORIC else 0,
        is_first=not work.state.exists or bool(work.state.is_empty),
    )
    frame = work.prepared.frame
    if deleted:
        frame = frame.where(f"not {name_sql(work.system.deleted)}")
    if not work.state.exists:
        return work.commit(summary, creation(work, frame))
    if not summary.inserted:
        return summary
    return work.commit(summary, append(work, work.aligned(frame)))
