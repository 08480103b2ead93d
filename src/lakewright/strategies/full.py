"""Full: the slice replaces the table's rows, or those of the partitions that it has.

Source: `processing-strategies.md`, "Full Strategy".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lakewright.errors import DataLossError
from lakewright.spec.entity import Strategy
from lakewright.strategies.silver import creation
from lakewright.strategies.summary import Summary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.strategies.work import Work

__all__ = ["apply_full"]


def apply_full(work: Work) -> Summary:
    """Return the summary after the slice has replaced what it replaces, in one commit.

    Raises:
        DataLossError: An empty slice would empty the table.
        SchemaDriftError: The slice doesn't fit.
    """
    summary = Summary(
        Strategy.FULL, work.facts.records, inserted=work.facts.records, is_first=not work.state.exists
    )
    if not work.state.exists:
        return work.commit(summary, creation(work, work.prepared.frame))
    if work.facts.records == 0 and not _empties(work):
        return summary
    frame, alignment = work.aligned(work.prepared.frame)
    return work.commit(summary, _overwrite(work, frame, evolves=alignment.evolves), alignment=alignment)


def _empties(work: Work) -> bool:
    """Whether an empty slice leaves an empty table behind."""
    if work.state.partition_columns or work.state.is_empty:
        return False
    if not work.entity.allow_empty:
        raise DataLossError(
            f"the slice is empty, and would empty {work.address}",
            remedy="Skip the slice, or set allow_empty: true if an empty slice is meant so.",
        )
    return True


def _overwrite(work: Work, frame: DataFrame, *, evolves: bool) -> Callable[[], None]:
    """Return the write that replaces the partitions of the frame, or all of an unpartitioned table."""
    writer = frame.writeTo(work.address.sql)
    if evolves:
        writer = writer.option("mergeSchema", "true")
    return writer.overwritePartitions
