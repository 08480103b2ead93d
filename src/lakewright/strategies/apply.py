"""Application of a slice to its table in one commit, by the strategy of its request.

Full replaces the table's rows, or those of the partitions that the slice contains. Merge and Historic write
what changes, by their rules. Their first load writes all rows, except those that arrive deleted.

Source: `processing-strategies.md`, "Full Strategy", "Merge Strategy" and "Historic Strategy (SCD Type 2)";
the checks of order in time are Lakewright's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import BackdatedError, DataLossError
from lakewright.manifest.payload import MAY_SKIP
from lakewright.schema.sql import name_sql
from lakewright.spec.models.entity import Strategy
from lakewright.spec.words import counted
from lakewright.strategies.changes import MATCH, Changes, compare
from lakewright.strategies.delete_inference import check_delete_brake
from lakewright.strategies.rules import measures
from lakewright.strategies.summary import Summary
from lakewright.strategies.write import append, create, key_condition, overwrite, write_changes
from lakewright.transform.sequence import is_outdated_sql
from lakewright.transform.steps import instant_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.strategies.slice_load import SliceLoad

__all__ = ["apply_slice"]


def apply_slice(load: SliceLoad) -> Summary:
    """Apply a slice in one commit, or in none if nothing changes; return the summary.

    Raises:
        DataLossError: An empty slice would empty the table, or a late one replace newer rows.
        SchemaDriftError: The slice does not fit the table.
        BackdatedError: A version would end before it begins, or begin before another version of its record
            ends.
        DeleteBrakeError: Delete inference would delete too large a share of the window.
    """
    if load.request.strategy is Strategy.FULL:
        return _replace(load)
    if load.is_first or not load.statistics.records:
        return _load_first(load)
    changes = compare(load)
    check_delete_brake(load, changes.inferred_deletes, changes.expected)
    summary = load.summary(**measures(load.request.strategy, changes.counts)).checked()
    if not changes.actions:
        return summary
    if load.request.strategy is Strategy.HISTORIC and load.request.permissions.allow_backdated:
        _check_order(load, changes)
    return load.commit(summary, write_changes(load, changes))


def _replace(load: SliceLoad) -> Summary:
    """Replace the table's rows, or those of the slice's partitions.

    If the table is one of Merge or Historic, records that arrive deleted are left out, as on a first run.
    """
    deleted = load.statistics.arrived_deleted if load.prepared.shape is not Strategy.FULL else 0
    rows = _rows(load, deleted)
    summary = load.summary(
        inserted=load.statistics.used - deleted,
        deleted=deleted,
        without_row=0 if load.state.exists else deleted,
    )
    if not load.state.exists:
        return load.commit(summary, create(load, rows))
    _check_not_outdated(load)
    if not summary.inserted and not empties_table(load):
        return summary
    return load.commit(summary, overwrite(load, load.aligned(rows)))


def _load_first(load: SliceLoad) -> Summary:
    """Write the slice's rows as the first of the table, which is created if necessary.

    A slice without rows creates the table too, but makes no commit to an existing one.
    """
    deleted = load.statistics.arrived_deleted
    counts = {"insert": load.statistics.used - deleted, "unknown": deleted}
    summary = load.summary(**measures(load.request.strategy, counts))
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
    value, latest = load.target_sequence(sequence), load.latest_sequence(sequence)
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


def empties_table(load: SliceLoad) -> bool:
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
