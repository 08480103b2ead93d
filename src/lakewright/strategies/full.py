"""Full: the slice replaces the table's rows, or those of the partitions that it has.

Source: `processing-strategies.md`, "Full Strategy".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lakewright.errors import DataLossError
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.summary import Summary
from lakewright.strategies.upsert import creation
from lakewright.transform.sql import name_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.strategies.work import Work

__all__ = ["apply_full"]


def apply_full(work: Work) -> Summary:
    """Return the summary after the slice has replaced what it replaces, in one commit.

    Where the table is one of Merge or Historic, records that arrive deleted are left out, as on a first run.

    Raises:
        DataLossError: An empty slice would empty the table.
        SchemaDriftError: The slice doesn't fit.
    """
    rows = work.prepared.frame
    deleted = work.facts.arrived_deleted if work.prepared.shape is not Strategy.FULL else 0
    if deleted:
        rows = rows.where(f"not {name_sql(work.system.deleted)}")
    records = work.facts.records
    summary = Summary(
        Strategy.FULL, records, inserted=records - deleted, deleted=deleted, is_first=not work.state.exists
    )
    if not work.state.exists:
        return work.commit(summary, creation(work, rows))
    if not summary.inserted and not _empties(work):
        return summary
    return work.commit(summary, _overwrite(work, work.aligned(rows)))


def _empties(work: Work) -> bool:
    """Whether an empty slice leaves an empty table behind."""
    if work.state.partition_columns or work.state.is_empty:
        return False
    if not work.entity.settings.allow_empty:
        raise DataLossError(
            f"the slice has no rows to keep, and would empty {work.address}",
            remedy="If an empty slice is meant so, set allow_empty: true, then resolve the item; "
            "else resolve and skip it.",
        )
    return True


def _overwrite(work: Work, frame: DataFrame) -> Callable[[], None]:
    """Return the write that replaces the partitions of the frame, or all of an unpartitioned table."""
    writer = frame.writeTo(work.address.sql)
    if work.fit.evolves:
        writer = writer.option("mergeSchema", "true")
    return writer.overwritePartitions
