"""Appends that are done once: a build that a kill cut off, and that is resumed, adds no rows twice.

An append to a Delta table carries an identity, which a run that is resumed shares with the killed one.

Source: Delta's documentation, "Idempotent table writes".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.lake.failpoint import reach_failpoint
from lakewright.lake.partition import Partition
from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.step import Append
from lakewright.relations.relation import OutputMode, StoredRelation, WriteSummary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.targets.context import Context

__all__ = ["ADDED_ALREADY", "append_of", "earlier_append", "telling_refusal", "write_rows"]

ADDED_ALREADY = "an earlier attempt has added its rows already"
"""The reason of a build that adds none."""


def append_of(relation: StoredRelation, mode: OutputMode) -> Append | None:
    """Return that writing a relation in a mode adds rows to those that are there; None if it does not."""
    return Append(relation.appends_once) if mode is OutputMode.APPEND else None


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


def telling_refusal(found: Dirtiness, mode: OutputMode, observation: Observation) -> Dirtiness:
    """Return a target's dirtiness with what `ERROR_IF_EXISTS` does about the rows that are there.

    The build policy decides first: most of them leave a filled target as it is, so that nothing fails.
    """
    if mode is not OutputMode.ERROR_IF_EXISTS or observation.filled is not Answer.YES:
        return found
    if found.is_to_run:
        return replace(
            found, reasons=(*found.reasons, f"the build fails: rows are there (mode {mode.value})")
        )
    told = f"mode {mode.value} does not fail, as the build policy leaves it: `buildPolicy: ALWAYS` would"
    return replace(found, reasons=(*found.reasons, told))
