"""The Full strategy: the slice replaces the table's rows, or those of the partitions that it contains.

The first load of Merge and Historic falls back to it.

Source: `processing-strategies.md`, "Full Strategy", and "Behavior" of Merge and Historic (first run); that a
record which arrives deleted is not inserted is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lakewright.errors import DataLossError
from lakewright.manifest.payload import MAY_SKIP
from lakewright.schema.sql import name_sql
from lakewright.spec.models.entity import Strategy
from lakewright.spec.words import counted
from lakewright.strategies.pruning import value_sql
from lakewright.strategies.summary import Summary
from lakewright.strategies.write import append, create
from lakewright.transform.sequence import is_outdated_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.strategies.slice_load import SliceLoad

__all__ = ["apply_full", "initial_load", "overwrite"]


def apply_full(load: SliceLoad) -> Summary:
    """Replace the table's rows, or those of the slice's partitions, in one commit; return the summary.

    If the table is one of Merge or Historic, records that arrive deleted are left out, as on a first run.

    Raises:
        DataLossError: An empty slice would empty the table, or a late one replace newer rows.
        SchemaDriftError: The slice does not fit the table.
    """
    deleted = load.statistics.arrived_deleted if load.prepared.shape is not Strategy.FULL else 0
    rows = _rows(load, deleted)
    summary = load.summary(
        Strategy.FULL,
        inserted=load.statistics.used - deleted,
        deleted=deleted,
        without_row=0 if load.state.exists else deleted,
        is_first=not load.state.exists,
    )
    if not load.state.exists:
        return load.commit(summary, create(load, rows))
    _check_not_outdated(load)
    if not summary.inserted and not _empties_table(load):
        return summary
    return load.commit(summary, overwrite(load, load.aligned(rows)))


def initial_load(load: SliceLoad, strategy: Strategy) -> Summary:
    """Write the slice's rows as the first of the table, which is created if necessary; return the summary.

    A slice without rows creates the table too, but makes no commit to an existing one.
    """
    deleted = load.statistics.arrived_deleted
    summary = load.summary(
        strategy,
        inserted=load.statistics.used - deleted,
        deleted=deleted if strategy is Strategy.MERGE else 0,
        closed=deleted if strategy is Strategy.HISTORIC else 0,
        without_row=deleted,
        is_first=load.is_first,
    )
    rows = _rows(load, deleted)
    if not load.state.exists:
        return load.commit(summary, create(load, rows))
    if not summary.inserted and not (deleted and load.keeps_tombstones):
        return summary
    return load.commit(summary, append(load, load.aligned(rows)))


def _rows(load: SliceLoad, deleted: int) -> DataFrame:
    """Return the slice's rows without those that arrive deleted, or with tombstones for them."""
    frame = load.prepared.frame
    if not deleted:
        return frame
    return (
        load.as_tombstones(frame)
        if load.keeps_tombstones
        else frame.where(f"not {name_sql(load.system.deleted)}")
    )


def _check_not_outdated(load: SliceLoad) -> None:
    """Raise `DataLossError` if a late slice would replace rows that are newer than all of its own.

    Without `sequence_by` nothing tells which rows are newer.
    """
    from pyspark.sql import functions

    sequence, is_allowed = load.sequence, load.request.permissions.allow_data_loss
    if sequence is None or not load.request.is_late or is_allowed or load.state.is_empty:
        return
    value, latest = load.target_sequence(sequence), _latest_sql(load, sequence)
    replaced = load.target()
    if load.state.partition_columns:
        columns = [name_sql(name) for name in load.state.partition_columns]
        slice_ = load.aligned(load.prepared.frame).selectExpr(*columns).distinct().alias("s")
        is_same = " and ".join(f"s.{name} <=> t.{name}" for name in columns)
        replaced = replaced.alias("t").join(slice_, functions.expr(is_same), "left_semi")
    newer = replaced.where(is_outdated_sql(latest, value)).count()
    if newer:
        raise DataLossError(
            f"the late slice would replace {counted(newer, 'row')} whose {sequence} is greater than that of "
            "all its own",
            remedy="To replace these rows, resolve the item and run with --allow-data-loss.",
            details={"rows": newer, "of_slice": True, MAY_SKIP: True},
        )


def _latest_sql(load: SliceLoad, sequence: str) -> str:
    kind = next((c.type.ddl for c in load.state.columns if c.name.lower() == sequence.lower()), "string")
    return "null" if load.statistics.latest is None else value_sql(load.statistics.latest, kind)


def _empties_table(load: SliceLoad) -> bool:
    """Return whether an empty slice removes all rows of the table.

    Raises:
        DataLossError: It would, and the entity does not set `allow_empty`.
    """
    if load.state.partition_columns or load.state.is_empty:
        return False
    if not load.entity.settings.allow_empty:
        raise DataLossError(
            f"the slice has no rows to keep, and would empty {load.address}",
            remedy="If the source is really empty, set allow_empty: true, then resolve the item.",
            details={"of_slice": True, MAY_SKIP: True},
        )
    return True


def overwrite(load: SliceLoad, rows: DataFrame) -> Callable[[], None]:
    """Return the write that replaces the partitions of these rows, or all rows of an unpartitioned table."""
    writer = rows.writeTo(load.address.sql)
    if load.fit.evolves:
        writer = writer.option("mergeSchema", "true")
    return writer.overwritePartitions
