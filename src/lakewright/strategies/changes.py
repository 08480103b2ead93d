"""Comparison of a slice with its table: each row gets a label that determines how it is written.

Only rows that change something are kept, computed once; all others are only counted. The cost of the write
that follows depends on the number of changes alone.

Source: `processing-strategies.md`, "Behavior" of Merge and Historic. That equal rows are left out before the
MERGE is Lakewright's own: a MERGE rewrites every file in which a key matches.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakewright.errors import VerificationError
from lakewright.lake.failpoint import reach_failpoint
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql, text_sql
from lakewright.strategies.delete_inference import missing_from_slice, rows_expected
from lakewright.strategies.outdated import rebuild_command
from lakewright.strategies.pruning import value_sql
from lakewright.transform.sequence import is_outdated_sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

    from lakewright.strategies.slice_load import SliceLoad

__all__ = [
    "ACTION",
    "MATCH",
    "MISSING",
    "OUTDATED",
    "TARGET",
    "Action",
    "Changes",
    "Comparison",
    "TargetNames",
    "compare",
]

ACTION = "_lakewright_action"
MATCH = "_lakewright_match"
LABEL = "_lakewright_label"

MISSING = "missing"
"""Label of rows of the table that delete inference found missing from the slice."""

# The following sizes were chosen, not measured one by one. Their order of magnitude follows from what Spark
# can broadcast: 200,000 keys of 64 hexadecimal digits take about 18 MB.

LARGE_TARGET = 1_000_000
"""Rows above which a table is not sorted for the sake of a small slice."""

SMALL_SLICE = 200_000
"""Rows up to which a slice's keys are broadcast, so that a large table need not be sorted."""

FEW_CHANGES = 200_000
"""Changed rows up to which their keys are broadcast, so that a large slice need not be sorted again."""


@dataclass(frozen=True, slots=True)
class TargetNames:
    """Names by which labels refer to the table's row; its key is null if no row matches.

    `key` is the first of the columns by which rows are matched; the others have a number after it.
    """

    key: str = "_lakewright_key"
    hash: str = "_lakewright_hash"
    is_deleted: str = "_lakewright_deleted"
    sequence: str = "_lakewright_sequence"


TARGET = TargetNames()

OUTDATED = "outdated"
"""Label of rows of the slice that are older than the table's row; they change nothing."""


@dataclass(frozen=True, slots=True)
class Action:
    """How the write treats one row.

    Attributes:
        name: Name of the action.
        matches: Whether it applies to the table's row with the same key; otherwise it only inserts.
        is_whole: Whether it needs all columns of the slice; otherwise the key is enough, and the column of
            `sequence_by`.
    """

    name: str
    matches: bool = True
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """How rows are labelled, and which actions follow from a label.

    Attributes:
        target: Condition on the rows of the table that can be matched.
        closed: Condition on further rows of the table, of which a record may have several. With
            `sequence_by` the latest of them stands for a record without a row that meets `target`, as a
            deleted one.
        labels: Label to the condition of the rows that get it, over the slice's columns and `TARGET`; the
            first condition that holds decides.
        actions: Label to its actions; rows with other labels are only counted.
    """

    target: str
    labels: Mapping[str, str]
    actions: Mapping[str, tuple[Action, ...]]
    closed: str | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes that a slice brings.

    Attributes:
        rows: The rows to write, computed already: the table's columns, `ACTION`, and `MATCH`, the first of
            `keys` of the table's row; null for rows that are only inserted.
        keys: The columns by which the table's row is found.
        counts: Label to number of rows, for every label of the comparison.
        actions: Names of the actions that occur in the rows.
        inferred_deletes: Rows of the table that are missing from the slice.
        expected: Rows of the table that the slice should contain.
    """

    rows: DataFrame
    keys: tuple[str, ...]
    counts: Mapping[str, int]
    actions: frozenset[str]
    inferred_deletes: int = 0
    expected: int = 0


def compare(load: SliceLoad, comparison: Comparison) -> Changes:
    """Return the changes of a slice, computed by one query, or by two if slice and table are both large."""
    from pyspark.sql import Observation, functions

    comparison = _with_sequence(load, comparison)
    frame = _aligned(load)
    labels_seen, expected_seen, missing_seen = Observation(), Observation(), Observation()
    count_rows = functions.count(functions.lit(1)).alias("rows")
    is_large = _is_large(load)
    labelled = _labelled(load, _narrow(load, frame) if is_large else frame, comparison)
    labelled = labelled.observe(labels_seen, *_label_counts(comparison))
    if is_large:
        labelled = _widened(load, labelled, labels_seen, comparison)
    changed = _changed(load, labelled, comparison)
    expected = rows_expected(load)
    if expected is not None:
        missing = missing_from_slice(load, expected.observe(expected_seen, count_rows))
        missing = _missing_rows(load, missing, comparison).observe(missing_seen, count_rows)
        changed = changed.unionByName(missing, allowMissingColumns=True)
    is_idle = is_large and expected is None and not _actions(comparison, _counted(labels_seen))
    rows = changed if is_idle else changed.localCheckpoint()
    reach_failpoint("after_compare")
    counts = _counted(labels_seen)
    _check_unique_matches(load, sum(counts.values()))
    inferred, expected_rows = 0, 0
    if expected is not None:
        inferred, expected_rows = int(missing_seen.get["rows"]), int(expected_seen.get["rows"])
    actions = _actions(comparison, {**counts, MISSING: inferred})
    return Changes(rows, load.matched, counts, actions, inferred, expected_rows)


def _with_sequence(load: SliceLoad, comparison: Comparison) -> Comparison:
    """Return the comparison that labels outdated rows first, if the entity has `sequence_by`."""
    if load.sequence is None:
        return comparison
    is_outdated = f"{TARGET.key} is not null and {is_outdated_sql(name_sql(load.sequence), TARGET.sequence)}"
    return replace(comparison, labels={OUTDATED: is_outdated, **comparison.labels})


def _aligned(load: SliceLoad) -> DataFrame:
    """Return the slice's rows with the table's columns, and without a primary key that is not needed yet.

    Rows that arrive deleted are not written, or as tombstones.
    """
    frame = load.as_tombstones(load.prepared.frame) if load.keeps_tombstones else load.prepared.frame
    frame = load.aligned(frame)
    return frame if load.system.key in load.matched else frame.drop(load.system.key)


def _columns(load: SliceLoad) -> list[str]:
    """Return SQL of the columns by which rows are matched."""
    return [name_sql(name) for name in load.matched]


def _keys(load: SliceLoad) -> list[str]:
    """Return the names that these columns of the table have beside those of the slice."""
    return [TARGET.key, *(f"{TARGET.key}_{number}" for number in range(1, len(load.matched)))]


def _equal(one: Sequence[str], other: Sequence[str]) -> Column:
    from pyspark.sql import functions

    return functions.expr(" and ".join(f"{left} = {right}" for left, right in zip(one, other, strict=True)))


def _as(columns: Iterable[str], names: Iterable[str]) -> list[str]:
    return [f"{column} as {name}" for column, name in zip(columns, names, strict=True)]


def _is_large(load: SliceLoad) -> bool:
    """Return whether keys are compared first, and the other columns are read again for changed rows only.

    This pays off if slice and table are both large. It is not done if expressions compute columns: they might
    give another value the second time, and what is written must be what was compared.
    """
    is_plain = not load.entity.calculated and not load.entity.transformations
    return is_plain and (load.state.rows or 0) > LARGE_TARGET and load.statistics.records > SMALL_SLICE


def _narrow(load: SliceLoad, frame: DataFrame) -> DataFrame:
    """Return only the columns that labels depend on, so that only they are shuffled."""
    system = load.system
    names = dict.fromkeys((*load.matched, system.hash, system.deleted, load.sequence))
    return frame.selectExpr(*(name_sql(name) for name in names if name is not None))


def _widened(
    load: SliceLoad, labelled: DataFrame, labels_seen: Observation, comparison: Comparison
) -> DataFrame:
    """Return the changed rows with all their columns, after their keys and labels were computed."""
    from pyspark.sql import functions

    frame, hash_ = _aligned(load), name_sql(load.system.hash)
    columns, keys, known = _columns(load), _keys(load), "_lakewright_known"
    changed = labelled.where(_has_actions(comparison))
    changed = changed.selectExpr(*_as(columns, keys), f"{hash_} as {known}", LABEL).localCheckpoint()
    counts = _counted(labels_seen)
    if sum(counts[label] for label in comparison.actions if label in counts) <= FEW_CHANGES:
        changed = functions.broadcast(changed)
    # The hash is carried along with the key, because computing it again costs more than all other work here.
    joined = frame.drop(load.system.hash).join(changed, _equal(columns, keys))
    return joined.drop(*keys).withColumnRenamed(known, load.system.hash)


def _counted(seen: Observation) -> dict[str, int]:
    return {label: int(count) for label, count in seen.get.items()}


def _actions(comparison: Comparison, counts: Mapping[str, int]) -> frozenset[str]:
    """Return the names of the actions that rows have."""
    labels = (label for label in comparison.actions if counts.get(label))
    return frozenset(action.name for label in labels for action in comparison.actions[label])


def _check_unique_matches(load: SliceLoad, labelled: int) -> None:
    """Raise `VerificationError` if a record of the slice matches more than one row of the table."""
    records, called = load.statistics.used, shlex.quote(load.entity.called)
    if labelled > records:
        raise VerificationError(
            f"{load.address} holds several rows for one key of the slice: {records} records matched "
            f"{labelled} times",
            remedy=f"`lakewright doctor {called}` finds most such rows, and what else wrote to the table. "
            f"`{rebuild_command(load.entity)}` builds it again from its slices.",
            details={"records": records, "labelled": labelled},
        )


def _labelled(load: SliceLoad, frame: DataFrame, comparison: Comparison) -> DataFrame:
    """Return the slice's rows joined with the table's rows of the same keys, labelled."""
    from pyspark.sql import functions

    columns, keys = _columns(load), _keys(load)
    target = _target(load, comparison)
    if (load.state.rows or 0) > LARGE_TARGET and load.statistics.records <= SMALL_SLICE:
        own = [f"_lakewright_own_{number}" for number in range(len(keys))]
        wanted = functions.broadcast(frame.selectExpr(*_as(columns, own)))
        target = target.join(wanted, _equal(keys, own), "left_semi")
    joined = frame.join(target, _equal(columns, keys), "left")
    cases = " ".join(
        f"when {condition} then {text_sql(label)}" for label, condition in comparison.labels.items()
    )
    return joined.withColumn(LABEL, functions.expr(f"case {cases} end"))


def _target(load: SliceLoad, comparison: Comparison) -> DataFrame:
    """Return the columns of the table that labels depend on, under the names of `TARGET`."""
    if load.sequence is not None and comparison.closed is not None:
        return _last_states(load, comparison, load.sequence)
    system, (key, *others) = load.system, _columns(load)
    condition = f"{comparison.target} and {load.match_condition('t')}"
    target = load.target().alias("t")
    sequence = (
        [] if load.sequence is None else [f"{load.target_sequence(load.sequence)} as {TARGET.sequence}"]
    )
    if load.is_small:
        # As a filter the condition makes Delta look for files to skip, which takes longer than reading them.
        key = f"if({condition}, {key}, null)"
    else:
        target = target.where(condition)
    return target.selectExpr(
        *_as((key, *others), _keys(load)),
        f"{name_sql(system.hash)} as {TARGET.hash}",
        f"coalesce({name_sql(system.deleted)}, false) as {TARGET.is_deleted}",
        *sequence,
    )


def _last_states(load: SliceLoad, comparison: Comparison, sequence: str) -> DataFrame:
    """Return one row for each record of the table: that which can be matched, or its latest closed one."""
    from pyspark.sql import functions

    system, value = load.system, load.target_sequence(sequence)
    wanted = f"(({comparison.target}) or ({comparison.closed})) and {load.match_condition('t')}"
    state = f"struct({comparison.target} as is_open, {value} as sequence, {name_sql(system.hash)} as hash)"
    rows = load.target().alias("t").where(wanted)
    keys = _keys(load)
    latest = rows.groupBy(*map(functions.expr, _as(_columns(load), keys))).agg(
        functions.expr(f"max({state}) as state")
    )
    return latest.selectExpr(
        *keys,
        f"state.hash as {TARGET.hash}",
        f"not state.is_open as {TARGET.is_deleted}",
        f"state.sequence as {TARGET.sequence}",
    )


def _label_counts(comparison: Comparison) -> list[Column]:
    from pyspark.sql import functions

    return [
        functions.expr(f"count_if(coalesce({LABEL} = {text_sql(label)}, false))").alias(label)
        for label in comparison.labels
    ]


def _changed(load: SliceLoad, labelled: DataFrame, comparison: Comparison) -> DataFrame:
    """Return one row for each action; columns that an action does not need are null.

    The primary key is computed here, for changed rows alone, if rows were matched by other columns.
    """
    from pyspark.sql import functions

    key, kept = name_sql(load.matched[0]), {*load.matched[1:], load.sequence}
    cases = " ".join(
        f"when {text_sql(label)} then array({', '.join(_action_sql(action, key) for action in actions)})"
        for label, actions in comparison.actions.items()
    )
    changed = labelled.where(_has_actions(comparison))
    if load.system.key not in load.matched:
        changed = changed.withColumn(load.system.key, functions.expr(load.prepared.key_sql))
    changed = changed.selectExpr("*", f"inline(case {LABEL} {cases} end) as ({ACTION}, {MATCH})")
    whole = {action.name for actions in comparison.actions.values() for action in actions if action.is_whole}
    is_whole = f"{ACTION} in ({', '.join(text_sql(name) for name in sorted(whole)) or 'null'})"
    columns = {name: name_sql(name) for name in load.fit.columns}
    return changed.selectExpr(
        *(sql if name in kept else f"if({is_whole}, {sql}, null) as {sql}" for name, sql in columns.items()),
        ACTION,
        MATCH,
    )


def _has_actions(comparison: Comparison) -> str:
    labels = ", ".join(text_sql(label) for label in comparison.actions) or "null"
    return f"{LABEL} in ({labels})"


def _action_sql(action: Action, key: str) -> str:
    match = key if action.matches else f"if(false, {key}, null)"
    return f"struct({text_sql(action.name)} as {ACTION}, {match} as {MATCH})"


def _missing_rows(load: SliceLoad, missing: DataFrame, comparison: Comparison) -> DataFrame:
    """Return the rows that are missing from the slice as rows of the write."""
    (action,) = comparison.actions[MISSING]
    return missing.selectExpr(
        f"{text_sql(action.name)} as {ACTION}",
        f"{name_sql(load.system.key)} as {MATCH}",
        *_deletion_sequence(load),
    )


def _deletion_sequence(load: SliceLoad) -> Iterator[str]:
    """Yield SQL of the value of `sequence_by` that a row gets whose record is missing from the slice.

    It is the slice's greatest, so that no older row of the record brings it back.
    """
    name = load.sequence
    if name is None:
        return
    kind = type_of(load.prepared.frame.schema[load.prepared.sequence or name].dataType).ddl
    known = next((c.type.ddl for c in load.state.columns if c.name.lower() == name.lower()), kind)
    latest = "null" if load.statistics.latest is None else value_sql(load.statistics.latest, known)
    yield f"greatest({load.target_sequence(name)}, cast({latest} as {known})) as {name_sql(name)}"
