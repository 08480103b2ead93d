"""Comparing a slice with its table: each row is labelled with what is to happen, in one pass.

Only rows that change something are put down, once; all others are only counted. The write that follows then
costs what changed.

Source: `processing-strategies.md`, "Behavior" of Merge and Historic; that equal rows are left out before the
merge is Lakewright's own (a MERGE rewrites every file in which a key matches).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.errors import VerificationError
from lakewright.lake.failpoint import reach_failpoint
from lakewright.strategies.pruning import within_ranges
from lakewright.transform.sql import name_sql, text_sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

    from lakewright.strategies.work import Work

__all__ = ["ACTION", "HELD", "MATCH", "MISSING", "Action", "Changes", "Comparison", "Held", "compare"]

ACTION = "_lakewright_action"
MATCH = "_lakewright_match"
LABEL = "_lakewright_label"

MISSING = "missing"
"""Label of the target's rows that the slice lacks."""

LARGE_TARGET = 1_000_000
"""Rows of a target that isn't sorted for the sake of a small slice."""

SMALL_SLICE = 200_000
"""Rows of a slice whose keys go to every worker, so that a large target isn't sorted."""

FEW = 200_000
"""Acting rows whose keys go to every worker, so that a large slice isn't sorted."""


@dataclass(frozen=True, slots=True)
class Held:
    """Names under which labels find the columns of the target's row; the key is null where none matches."""

    key: str = "_lakewright_key"
    hash: str = "_lakewright_hash"
    is_deleted: str = "_lakewright_deleted"


HELD = Held()


@dataclass(frozen=True, slots=True)
class Action:
    """One row of the write.

    Attributes:
        name: What it does.
        matches: Whether it is for the target's row with its key; else it only inserts.
        is_whole: Whether it needs the slice's columns; else the key is enough.
    """

    name: str
    matches: bool = True
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """How rows are labelled, and what the labels mean for the write.

    Attributes:
        target: Condition over the target's rows that can be matched.
        labels: Label to the condition of the rows that get it, over the slice's columns and `HELD`; the first
            that holds decides.
        actions: Label to its actions; rows of other labels are only counted.
        missing: Condition over the target's rows of which the slice should have each, or None.
    """

    target: str
    labels: Mapping[str, str]
    actions: Mapping[str, tuple[Action, ...]]
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """A compared slice.

    Attributes:
        rows: Put down already: the table's columns, `ACTION`, and `MATCH`: the key of the target's row, null
            where it only inserts.
        counts: Label to number of rows, of every label.
        actions: Names of the actions that rows have.
        window: Rows of the target that could have been missing.
    """

    rows: DataFrame
    counts: Mapping[str, int]
    actions: frozenset[str]
    window: int


def compare(work: Work, comparison: Comparison) -> Changes:
    """Return what is to be written for a slice, put down by a single query, or two where both are large."""
    from pyspark.sql import Observation, functions

    frame = _aligned(work)
    seen, window, inferred = Observation(), Observation(), Observation()
    count_rows = functions.count(functions.lit(1)).alias("rows")
    is_large = _is_large(work)
    labelled = _labelled(work, _narrow(work, frame) if is_large else frame, comparison)
    labelled = labelled.observe(seen, *_label_counts(comparison))
    if is_large:
        labelled = _widened(work, labelled, seen, comparison)
    changed = _changed(work, labelled, comparison)
    if comparison.missing is not None:
        expected = work.target().where(comparison.missing).observe(window, count_rows)
        changed = changed.unionByName(
            _missing(work, expected, comparison).observe(inferred, count_rows), allowMissingColumns=True
        )
    is_idle = is_large and comparison.missing is None and not _acting(comparison, _counted(seen))
    rows = changed if is_idle else changed.localCheckpoint()
    reach_failpoint("after_compare")
    counts = _counted(seen)
    _refuse_doubled(work, sum(counts.values()))
    if comparison.missing is not None:
        counts[MISSING] = int(inferred.get["rows"])
    size = int(window.get["rows"]) if comparison.missing is not None else 0
    return Changes(rows, counts, _acting(comparison, counts), size)


def _aligned(work: Work) -> DataFrame:
    """The slice's rows with the table's columns; what arrives deleted isn't written."""
    return work.aligned(work.prepared.frame, unless=name_sql(work.system.deleted))


def _is_large(work: Work) -> bool:
    """Whether slice and target are so large that keys are compared first, and all columns read once more.

    Not where expressions make columns: what is compared must be what is written.
    """
    is_plain = not work.entity.calculated and not work.entity.transformations
    return is_plain and (work.state.rows or 0) > LARGE_TARGET and work.facts.records > SMALL_SLICE


def _narrow(work: Work, frame: DataFrame) -> DataFrame:
    """The columns by which rows are labelled: only they go from worker to worker."""
    system = work.system
    return frame.selectExpr(*(name_sql(name) for name in (system.key, system.hash, system.deleted)))


def _widened(work: Work, labelled: DataFrame, seen: Observation, comparison: Comparison) -> DataFrame:
    """The acting rows with all their columns again, after their keys and labels were put down."""
    from pyspark.sql import functions

    frame = _aligned(work)
    key, hash_ = name_sql(work.system.key), name_sql(work.system.hash)
    found, known = "_lakewright_found", "_lakewright_known"
    acting = labelled.where(_is_acting(comparison))
    acting = acting.selectExpr(f"{key} as {found}", f"{hash_} as {known}", LABEL).localCheckpoint()
    counts = _counted(seen)
    if sum(counts[label] for label in comparison.actions if label in counts) <= FEW:
        acting = functions.broadcast(acting)
    joined = frame.drop(work.system.hash).join(acting, functions.expr(f"{key} = {found}"))
    return joined.drop(found).withColumnRenamed(known, work.system.hash)


def _counted(seen: Observation) -> dict[str, int]:
    return {label: int(count) for label, count in seen.get.items()}


def _acting(comparison: Comparison, counts: Mapping[str, int]) -> frozenset[str]:
    labels = (label for label in comparison.actions if counts.get(label))
    return frozenset(action.name for label in labels for action in comparison.actions[label])


def _refuse_doubled(work: Work, labelled: int) -> None:
    """Refuse a table in which a key of the slice matched more than one row."""
    if labelled > work.facts.records:
        raise VerificationError(
            f"{work.address} holds several rows for a primary key of the slice: {work.facts.records} records "
            f"matched {labelled} times",
            remedy="See what else writes to it; then load it anew with --strategy full --allow-data-loss.",
            details={"records": work.facts.records, "labelled": labelled},
        )


def _labelled(work: Work, frame: DataFrame, comparison: Comparison) -> DataFrame:
    """The slice's rows beside what the target has under their keys, labelled."""
    from pyspark.sql import functions

    key = name_sql(work.system.key)
    held = _held(work, comparison)
    if (work.state.rows or 0) > LARGE_TARGET and work.facts.records <= SMALL_SLICE:
        keys = frame.selectExpr(f"{key} as {LABEL}")
        held = held.join(functions.broadcast(keys), functions.expr(f"{HELD.key} = {LABEL}"), "left_semi")
    joined = frame.join(held, functions.expr(f"{key} = {HELD.key}"), "left")
    cases = " ".join(
        f"when {condition} then {text_sql(label)}" for label, condition in comparison.labels.items()
    )
    return joined.withColumn(LABEL, functions.expr(f"case {cases} end"))


def _held(work: Work, comparison: Comparison) -> DataFrame:
    system = work.system
    key = name_sql(system.key)
    condition = " and ".join((comparison.target, within_ranges(work, "t")))
    target = work.target().alias("t")
    if work.is_small:
        # As a filter it would have Delta look for files to leave out, which takes longer than reading them.
        key = f"if({condition}, {key}, null)"
    else:
        target = target.where(condition)
    return target.selectExpr(
        f"{key} as {HELD.key}",
        f"{name_sql(system.hash)} as {HELD.hash}",
        f"coalesce({name_sql(system.deleted)}, false) as {HELD.is_deleted}",
    )


def _label_counts(comparison: Comparison) -> list[Column]:
    from pyspark.sql import functions

    return [
        functions.expr(f"count_if(coalesce({LABEL} = {text_sql(label)}, false))").alias(label)
        for label in comparison.labels
    ]


def _changed(work: Work, labelled: DataFrame, comparison: Comparison) -> DataFrame:
    """The rows that the write needs, each with its action, emptied of columns that it doesn't."""
    key = name_sql(work.system.key)
    cases = " ".join(
        f"when {text_sql(label)} then array({', '.join(_action_sql(action, key) for action in actions)})"
        for label, actions in comparison.actions.items()
    )
    acting = labelled.where(_is_acting(comparison))
    acting = acting.selectExpr("*", f"inline(case {LABEL} {cases} end) as ({ACTION}, {MATCH})")
    whole = {action.name for actions in comparison.actions.values() for action in actions if action.is_whole}
    is_whole = f"{ACTION} in ({', '.join(text_sql(name) for name in sorted(whole)) or 'null'})"
    columns = (name_sql(name) for name in work.fit.columns)
    return acting.selectExpr(
        *(f"if({is_whole}, {column}, null) as {column}" for column in columns), ACTION, MATCH
    )


def _is_acting(comparison: Comparison) -> str:
    labels = ", ".join(text_sql(label) for label in comparison.actions) or "null"
    return f"{LABEL} in ({labels})"


def _action_sql(action: Action, key: str) -> str:
    match = key if action.matches else "cast(null as string)"
    return f"struct({text_sql(action.name)} as {ACTION}, {match} as {MATCH})"


def _missing(work: Work, expected: DataFrame, comparison: Comparison) -> DataFrame:
    """The rows of the target that the slice lacks, as rows of the write."""
    from pyspark.sql import functions

    key = name_sql(work.system.key)
    keys = work.prepared.frame.selectExpr(f"{key} as {LABEL}")
    lacking = expected.join(keys, functions.expr(f"{key} = {LABEL}"), "left_anti")
    (action,) = comparison.actions[MISSING]
    return lacking.selectExpr(f"{text_sql(action.name)} as {ACTION}", f"{key} as {MATCH}")
