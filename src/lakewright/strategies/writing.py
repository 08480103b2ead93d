"""Application of a slice to its table in one commit, by the strategy of its request.

Full replaces the table's rows, or those of the partitions that the slice contains. Merge and Historic write
what changes, by their rules. Their first load writes all rows, except those that arrive deleted.

Source: `processing-strategies.md`, "Full Strategy", "Merge Strategy" and "Historic Strategy (SCD Type 2)";
the checks of order in time are Lakewright's own. When a table is rewritten is explained in
docs/decisions/010-rewriting-tables.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from lakewright.errors import BackdatedError, DataLossError
from lakewright.errors.phrase import Option, Phrase
from lakewright.lake.delta_sql import Clause, merge_rows
from lakewright.lake.table import drop_entry_alone, remove_uncommitted
from lakewright.manifest.payload import MAY_SKIP, PERMITTED_BY
from lakewright.schema.sql import name_sql, text_sql
from lakewright.spec.grants import Grant
from lakewright.spec.models.entity import Strategy
from lakewright.spec.words import counted
from lakewright.strategies.changes import ACTION, MATCH, Changes, compare
from lakewright.strategies.delete_inference import check_delete_brake, written_condition
from lakewright.strategies.found_rows import SMALL_SOURCE, FoundRows
from lakewright.strategies.rules import INSERT, PATCH, UPDATE, measures, patch_of
from lakewright.strategies.summary import Summary
from lakewright.strategies.table_properties import silver_properties
from lakewright.transform.sequence import is_outdated_sql
from lakewright.transform.steps import instant_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriterV2

    from lakewright.strategies.slice_load import SliceLoad


REWRITTEN_SHARE = 0.3
"""Share of a table's rows above which rewriting files costs less than marking rows in them.

docs/benchmarks.md brackets it: with 10 % changed a MERGE writes a tenth of the bytes; with 100 % a rewrite
takes 17.9 s of CPU time and a MERGE by hand 19.9 s. The point between them was chosen, not measured.
"""

MOST_MARKED = 1_000_000
"""Rows up to which their places go through this process; not measured."""

_DELETION_VECTORS = "spark.databricks.delta.merge.deletionVectors.persistent"


def apply_slice(load: SliceLoad) -> Summary:
    """Apply a slice in one commit, or in none if nothing changes; return the summary.

    Raises:
        DataLossError: An empty slice would empty the table, or a late one replace newer rows.
        SchemaDriftError: The slice does not fit the table.
        BackdatedError: A version would end before it begins, or begin before another version of its record
            ends.
        DeleteBrakeError: Delete inference would delete too large a share of the window.
    """
    if load.request.strategy is Strategy.FULL or load.is_first or not load.statistics.records:
        return _load_whole(load)
    changes = compare(load)
    check_delete_brake(load, changes.inferred_deletes, changes.expected)
    summary = load.summary(**measures(load.request.strategy, changes.counts)).checked()
    if not changes.actions:
        return summary
    if load.request.strategy is Strategy.HISTORIC and load.request.permissions.allow_backdated:
        _check_order(load, changes)
    return load.commit(summary, write_changes(load, changes))


def _load_whole(load: SliceLoad) -> Summary:
    """Write all rows of the slice: the first of the table, or with Full those in place of its former ones.

    Records that arrive deleted are left out, or kept as tombstones; Full writes them to a table of Full. The
    table is created if necessary, also by a slice without rows; such a slice makes no commit to an existing
    one unless Full empties that.
    """
    strategy, is_full = load.request.strategy, load.request.strategy is Strategy.FULL
    keeps_deleted = is_full and load.prepared.shape is Strategy.FULL
    deleted = 0 if keeps_deleted else load.statistics.arrived_deleted
    rows = _rows(load, deleted)
    label = "delete" if is_full and load.state.exists else "unknown"
    counts = {"insert": load.statistics.used - deleted, label: deleted}
    summary = load.summary(**measures(strategy, counts))
    if not load.state.exists:
        return load.commit(summary, create(load, rows))
    if is_full:
        _check_not_outdated(load)
    if not summary.inserted and not (_empties_table(load) if is_full else deleted and load.keeps_tombstones):
        return summary
    write = overwrite if is_full else append
    return load.commit(summary, write(load, load.aligned(rows)))


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

    Without `sequence_by` it is unknown which rows are newer.
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
            remedy=Phrase("To replace these rows, let the next run have ", Option("--allow-data-loss"), "."),
            details={"rows": newer, "of_slice": True, MAY_SKIP: True, PERMITTED_BY: Grant.DATA_LOSS},
        )


def _empties_table(load: SliceLoad) -> bool:
    """Return whether an empty slice removes all rows of the table.

    Raises:
        DataLossError: It would, and the entity does not set `allow_empty`.
    """
    if load.state.partition_columns or load.state.is_empty:
        return False
    if not load.entity.settings.allow_empty:
        raise DataLossError(
            f"the slice has no rows to keep, and would empty {load.address.shown}",
            remedy="If the source is really empty, set allow_empty: true.",
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
    found = later.alias("t").join(changed.alias("s"), functions.expr(_key_condition(changes)), "left_semi")
    count = found.select(system.key).distinct().count()
    if count:
        has = "record has" if count == 1 else "records have"
        raise BackdatedError(
            f"{count} {has} versions that begin or end at or after {at.isoformat()}; "
            "a version from then on would overlap them",
            remedy="Give a later processing time.",
            details={"records": count},
        )


def create(load: SliceLoad, rows: DataFrame) -> Callable[[], None]:
    """Return the write that creates the table with these rows, in one commit."""
    from pyspark.sql import functions

    writer = _described(load, rows).writeTo(load.address.sql).using("delta")
    for key, value in {**silver_properties(load.entity, load.prepared), **load.properties}.items():
        writer = writer.tableProperty(key, value)
    if load.prepared.partitions:
        writer = writer.partitionedBy(*(functions.col(name_sql(name)) for name in load.prepared.partitions))

    def write() -> None:
        remove_uncommitted(load.address)
        drop_entry_alone(load.lake, load.address)
        writer.create()

    return write


def _described(load: SliceLoad, rows: DataFrame) -> DataFrame:
    """Return rows whose columns have the descriptions that the entity declares, as comments."""
    present = {name.lower(): name for name in rows.columns}
    for name, text in load.entity.descriptions.items():
        if name.lower() in present:
            rows = rows.withMetadata(present[name.lower()], {"comment": text})
    return rows


def append(load: SliceLoad, rows: DataFrame) -> Callable[[], None]:
    """Return the write that appends rows with the table's columns."""
    return _evolving(load, rows).append


def overwrite(load: SliceLoad, rows: DataFrame) -> Callable[[], None]:
    """Return the write that replaces the partitions of these rows, or all rows of an unpartitioned table."""
    return _evolving(load, rows).overwritePartitions


def _evolving(load: SliceLoad, rows: DataFrame) -> DataFrameWriterV2:
    writer = rows.writeTo(load.address.sql)
    return writer.option("mergeSchema", "true") if load.fit.evolves else writer


def _key_condition(changes: Changes) -> str:
    """Return the condition that a row of the table, `t`, is the one that a row to write, `s`, is about."""
    own, *others = map(name_sql, changes.keys)
    return " and ".join((f"t.{own} = s.{MATCH}", *(f"t.{name} = s.{name}" for name in others)))


def write_changes(load: SliceLoad, changes: Changes) -> Callable[[], None]:
    """Return the write that applies changes: an append if no row matches, else at their places or a MERGE."""
    columns = [name_sql(name) for name in load.fit.columns]
    matches = sum(changes.actions.values()) - changes.actions.get(INSERT, 0)
    if not matches:
        return append(load, changes.rows.selectExpr(*columns))
    # Each action makes the queries longer to compile, even if no row has it.
    effects = {UPDATE: {column: f"s.{column}" for column in columns}, PATCH: patch_of(load)}
    effects = {action: effects[action] for action in effects if action in changes.actions}
    found = FoundRows.of(load, changes, effects)
    if found is not None and (_is_mostly_changed(load, matches) or not found.can_mark):
        return found.copy
    if found is not None and matches <= MOST_MARKED:
        return found.mark
    return partial(_merge, load, changes, effects)


def _is_mostly_changed(load: SliceLoad, matches: int) -> bool:
    """Return whether so many rows change that marking them costs more than rewriting their files."""
    rows = load.state.rows
    return rows is not None and matches > REWRITTEN_SHARE * rows


def _merge(load: SliceLoad, changes: Changes, effects: Mapping[str, Mapping[str, str]]) -> None:
    """Apply changes by Delta's MERGE, which finds their rows by their keys."""
    from pyspark.sql import functions

    inserts, count = changes.actions.get(INSERT, 0), sum(changes.actions.values())
    copies = _is_mostly_changed(load, count - inserts)
    load.session.conf.set(_DELETION_VECTORS, "false" if copies else "true")
    source = functions.broadcast(changes.rows) if count <= SMALL_SOURCE else changes.rows
    clauses = [
        Clause("update", f"s.{ACTION} = {text_sql(action)}", assignments)
        for action, assignments in effects.items()
    ]
    if inserts:
        whole_row = {column: f"s.{column}" for column in map(name_sql, load.fit.columns)}
        clauses.append(Clause("insert", f"s.{ACTION} = {text_sql(INSERT)}", whole_row))
    # The end is compared, not the flag: Delta skips files by counts of nulls, but not by booleans.
    target = f"{load.open_condition('t')} and {written_condition(load, changes.inferred_deletes)}"
    condition = f"{_key_condition(changes)} and {target}"
    evolves = load.fit.evolves
    merge_rows(load.session, load.address, source, clauses, condition=condition, evolves=evolves)
