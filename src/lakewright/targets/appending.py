"""Appends that are done once: a build that a kill cut off, and that is resumed, adds no rows twice.

An append to a Delta table carries an identity, which a run that is resumed shares with the killed one.

Source: Delta's documentation, "Idempotent table writes".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.partition import Partition
from lakewright.plan.outcome import Outcome
from lakewright.plan.step import Append
from lakewright.relations.relation import OutputMode, StoredRelation, WriteSummary
from lakewright.targets.kept_rows import kept_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.targets.context import Context

__all__ = ["ADDED_ALREADY", "append_of", "earlier_append", "write_rows"]

ADDED_ALREADY = "an earlier attempt has added its rows already"
"""The reason of a build that adds none."""


def append_of(relation: StoredRelation, mode: OutputMode) -> Append | None:
    """Return that writing a relation in a mode adds rows to those that are there; None if it does not."""
    words = kept_by(mode) if mode is OutputMode.APPEND else None
    return None if words is None else Append(words, relation.appends_once)


def earlier_append(
    context: Context, relation: StoredRelation, *, partition: Partition, mode: OutputMode
) -> Outcome | None:
    """Return the outcome if an earlier attempt has added the target's rows; None if they are to be written.

    If they were removed since, they are to be written again.
    """
    if mode is not OutputMode.APPEND or context.append_id is None:
        return None
    workspace = context.workspace
    found = relation.find_append(workspace, context.append_id, partition)
    if found is None:
        return None
    metrics = {} if found.version is None else {"delta_version": found.version}
    return Outcome(reasons=(ADDED_ALREADY,), metrics=metrics)


def write_rows(
    context: Context,
    relation: StoredRelation,
    frame: DataFrame,
    *,
    partition: Partition,
    mode: OutputMode,
) -> WriteSummary:
    """Write a target's rows; an append carries its identity."""
    workspace = context.workspace
    if mode is not OutputMode.APPEND or context.append_id is None:
        summary = relation.write(workspace, frame, partition=partition, mode=mode)
    else:
        summary = relation.append(workspace, frame, partition=partition, append_id=context.append_id)
    if mode is OutputMode.APPEND:
        reach_failpoint("after_append")
    return summary
