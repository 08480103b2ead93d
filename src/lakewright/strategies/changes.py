"""Comparison of a slice with its table: each row gets a label that determines how it is written.

Only rows that change something are kept, computed once; all others are only counted. The cost of the write
that follows depends on the number of changes alone.

Source: `processing-strategies.md`, "Behavior" of Merge and Historic. That equal rows are left out before the
MERGE is Lakewright's own: a MERGE rewrites every file in which a key matches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.errors import VerificationError
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.failpoint import reach_failpoint
from lakewright.schema.sql import name_sql, text_sql
from lakewright.spark.delta_files import PLACE
from lakewright.spark.engine import materialized
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.delete_inference import beside_slice, rows_expected
from lakewright.strategies.outdated import rebuild_command
from lakewright.strategies.rules import (
    INSERT,
    MISSING,
    PATCH,
    UPDATE,
    RecordState,
    actions_of,
    case_sql,
    labels_of,
    one_of_sql,
)
from lakewright.strategies.tuning import broadcast_limit
from lakewright.transform.sequence import is_outdated_sql
from lakewright.transform.steps import instant_column_sql, with_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

    from lakewright.strategies.slice_load import SliceLoad


ACTION = "_lakewright_action"
MATCH = "_lakewright_match"
LABEL = "_lakewright_label"

_KEY, _CONTENT, _IS_DELETED, _SEQUENCE = (
    f"_lakewright_{name}" for name in ("key", "content", "deleted", "sequence")
)
"""Columns of the table's row beside those of the slice; its key is null if no row matches.

`_KEY` is the first of the columns by which rows are matched; the others have a number after it. `_CONTENT`
with a number shows whether the rows have the same values.
"""

_OWN_CONTENT = "_lakewright_own_content"
"""The same of the slice's row."""

MANY_HASHED = 1 / 5
"""Share of a table's rows from which on a slice's rows are compared with them by values, not by their hashes.

By values, all columns of the table are read; by hashes, those of the slice are hashed. The comparison of a
slice with a fifth of the rows costs as much either way, or less by values
(docs/decisions/026-comparison-by-values.md).
"""

# The following sizes were chosen, not measured one by one. Their order of magnitude follows from what Spark
# can broadcast: 200,000 keys of 64 hexadecimal digits take about 18 MB.

LARGE_TARGET = 1_000_000
"""Rows above which a table is not sorted for the sake of a small slice."""

SMALL_SLICE = 200_000
"""Rows up to which a slice's keys are broadcast, so that a large table need not be sorted."""

ROW_OVERHEAD = 8
"""Bytes that Spark adds to those of a row's columns when it estimates how large a table is."""

FEW_CHANGES = 200_000
"""Changed rows up to which their keys are broadcast, so that a large slice need not be sorted again."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes that slices bring.

    Attributes:
        rows: The rows to write, computed already: the table's columns, `ACTION`, and `MATCH`, the first of
            `keys` of the table's row; null for rows that are only inserted. `PLACE` has the place of that
            row, if the table's files are known.
        keys: The columns by which the table's row is found.
        actions: Action to number of rows, for actions that occur in the rows.
        counts: Label to number of rows.
        expected: Rows of the table that the slice should contain.
    """

    rows: DataFrame
    keys: tuple[str, ...]
    actions: Mapping[str, int]
    counts: Mapping[str, int]
    expected: int = 0

    @property
    def inferred_deletes(self) -> int:
        """Rows of the table that are missing from the slice."""
        return self.counts.get(MISSING, 0)


@dataclass(frozen=True, slots=True)
class _Content:
    """What two rows with the same values have alike.

    Attributes:
        columns: SQL of it, over columns of slice and table alike.
        is_of_values: Whether it is a digest of the values; otherwise it is the hash that the table keeps.
    """

    columns: tuple[str, ...]
    is_of_values: bool

    @property
    def own(self) -> list[str]:
        """Names of its columns for the slice's row."""
        return [f"{_OWN_CONTENT}_{number}" for number in range(len(self.columns))]

    @property
    def known(self) -> list[str]:
        """Names of its columns for the table's row."""
        return [f"{_CONTENT}_{number}" for number in range(len(self.columns))]


def compare(load: SliceLoad) -> Changes:
    """Return the changes of a slice, computed by one query, or by two if slice and table are both large."""
    from pyspark.sql import Observation, functions

    content = _content(load)
    labels, actions = _labels(load, content), actions_of(load)
    frame = _aligned(load, content).selectExpr("*", *_as(content.columns, content.own))
    labels_seen, expected_seen, missing_seen = Observation(), Observation(), Observation()
    count_rows = functions.count(functions.lit(1)).alias("rows")
    is_large = _is_large(load, content)
    labelled = _labelled(load, _narrow(load, frame, content) if is_large else frame, labels, content)
    label_counts = (functions.expr(f"count_if({one_of_sql(LABEL, [n])})").alias(n) for n in labels)
    labelled = labelled.observe(labels_seen, *label_counts)
    if is_large:
        labelled = _widened(load, labelled, labels_seen, content)
    changed = _changed(load, labelled, content)
    expected = rows_expected(load)
    if expected is not None:
        missing = beside_slice(load, expected.observe(expected_seen, count_rows), "left_anti")
        missing = _missing_rows(load, missing).observe(missing_seen, count_rows)
        changed = changed.unionByName(missing, allowMissingColumns=True)
    is_idle = is_large and expected is None and not _counted_actions(actions, _counted(labels_seen))
    rows = changed if is_idle else materialized(changed)
    reach_failpoint("after_compare")
    counts = _counted(labels_seen)
    _check_unique_matches(load, sum(counts.values()))
    expected_rows = 0
    if expected is not None:
        counts[MISSING], expected_rows = int(missing_seen.get["rows"]), int(expected_seen.get["rows"])
    return Changes(rows, load.matched, _counted_actions(actions, counts), counts, expected_rows)


def _labels(load: SliceLoad, content: _Content) -> dict[str, str]:
    """Return the labels with their conditions over columns of the slice and the table's row."""
    is_known, is_latest, is_outdated = f"{_KEY} is not null", "true", None
    if load.sequence is not None:
        value = name_sql(load.sequence)
        is_latest = f"{value} <=> {_SEQUENCE}"
        is_outdated = is_outdated_sql(value, _SEQUENCE)
        if load.request.is_late and load.entity.settings.delete_missing:
            # A later slice has lacked the record, or has deleted it.
            is_outdated = f"({is_outdated} or {_IS_DELETED})"
        is_outdated = f"{is_known} and {is_outdated}"
        if load.request.strategy is Strategy.HISTORIC:
            # A record whose last version was closed by a delete has that version as its state.
            is_known = f"({is_known} and not {_IS_DELETED})"
    is_same = " and ".join(
        f"{own} <=> {known}" for own, known in zip(content.own, content.known, strict=True)
    )
    state = RecordState(is_known, _IS_DELETED, is_same, is_latest, is_outdated)
    return labels_of(load.request.strategy, name_sql(load.system.deleted), state)


def _aligned(load: SliceLoad, content: _Content) -> DataFrame:
    """Return the slice's rows with the table's columns, and without hashes that only changed rows need."""
    frame, system = load.aligned(load.prepared.frame), load.system
    frame = frame if system.key in load.matched else frame.drop(system.key)
    return frame.drop(system.hash) if content.is_of_values else frame


def _is_by_values(load: SliceLoad) -> bool:
    """Return whether rows are compared by their values; otherwise by the hashes that the table keeps."""
    if load.sequence is not None and load.request.strategy is Strategy.HISTORIC:
        return False  # the hash of a record's last state is found together with it
    is_worth_it = load.statistics.records >= MANY_HASHED * (load.state.rows or 0)
    return is_worth_it and load.has_table_values


def _content(load: SliceLoad) -> _Content:
    """Return what shows whether a row of the slice and the table's row have the same values."""
    if _is_by_values(load):
        return _Content(load.prepared.digest(load.matched), is_of_values=True)
    return _Content((name_sql(load.system.hash),), is_of_values=False)


def _columns(load: SliceLoad) -> list[str]:
    """Return SQL of the columns by which rows are matched."""
    return [name_sql(name) for name in load.matched]


def _keys(load: SliceLoad) -> list[str]:
    """Return the names that these columns of the table have beside those of the slice."""
    return [_KEY, *(f"{_KEY}_{number}" for number in range(1, len(load.matched)))]


def _equal(one: Sequence[str], other: Sequence[str]) -> Column:
    from pyspark.sql import functions

    return functions.expr(" and ".join(f"{left} = {right}" for left, right in zip(one, other, strict=True)))


def _as(columns: Iterable[str], names: Iterable[str]) -> list[str]:
    return [f"{column} as {name}" for column, name in zip(columns, names, strict=True)]


def _is_large(load: SliceLoad, content: _Content) -> bool:
    """Return whether keys are compared first, and the other columns are read again for changed rows only.

    This pays off if slice and table are both large. It is not done if expressions compute columns: they might
    give another value the second time, and what is written must be what was compared.
    """
    is_plain = not load.entity.calculated and not load.entity.transformations
    is_large = (load.state.rows or 0) > LARGE_TARGET and load.statistics.records > SMALL_SLICE
    return is_plain and is_large and not _is_broadcast(load, content)


def _is_broadcast(load: SliceLoad, content: _Content) -> bool:
    """Return whether Spark broadcasts the columns of the table that labels depend on."""
    width = ROW_OVERHEAD + 8 * (len(load.matched) + len(content.columns) + len(place_of(load))) + 1
    is_narrow = content.is_of_values and load.sequence is None and load.system.key not in load.matched
    return is_narrow and width * (load.state.rows or 0) <= broadcast_limit(load.session)


def _narrow(load: SliceLoad, frame: DataFrame, content: _Content) -> DataFrame:
    """Return only the columns that labels depend on, so that only they are shuffled."""
    columns = dict.fromkeys((*load.matched, load.system.deleted, load.sequence))
    names = (name_sql(name) for name in columns if name is not None)
    return frame.selectExpr(*names, *content.own)


def _widened(load: SliceLoad, labelled: DataFrame, labels_seen: Observation, content: _Content) -> DataFrame:
    """Return the changed rows with all their columns, after their keys and labels were computed."""
    from pyspark.sql import functions

    frame, hash_ = _aligned(load, content), load.system.hash
    columns, keys, actions = _columns(load), _keys(load), actions_of(load)
    # A hash is carried along with the key, because computing it again costs more than all other work here.
    known = [] if content.is_of_values else [f"{_OWN_CONTENT}_0 as {name_sql(hash_)}"]
    changed = labelled.where(one_of_sql(LABEL, actions))
    changed = materialized(changed.selectExpr(*_as(columns, keys), *known, LABEL, *place_of(load)))
    counts = _counted(labels_seen)
    if sum(counts.get(label, 0) for label in actions) <= FEW_CHANGES:
        changed = functions.broadcast(changed)
    return frame.drop(hash_).join(changed, _equal(columns, keys)).drop(*keys)


def _counted(seen: Observation) -> dict[str, int]:
    return {label: int(count) for label, count in seen.get.items()}


def _counted_actions(actions: Mapping[str, Iterable[str]], counts: Mapping[str, int]) -> dict[str, int]:
    """Return the number of rows with each action that occurs."""
    found: Counter[str] = Counter()
    for label, names in actions.items():
        found.update(dict.fromkeys(names, counts.get(label, 0)))
    return {name: count for name, count in found.items() if count}


def _check_unique_matches(load: SliceLoad, labelled: int) -> None:
    """Raise `VerificationError` if a record of the slice matches more than one row of the table."""
    records = load.statistics.used
    if labelled > records:
        raise VerificationError(
            f"{load.address.shown} holds several rows for one key of the slice: {records} records matched "
            f"{labelled} times",
            remedy=Phrase(
                Command("doctor", load.entity.called),
                " finds most such rows, and what else wrote to the table. ",
                rebuild_command(load.entity),
                " builds it again from its slices.",
            ),
            details={"records": records, "labelled": labelled},
        )


def _labelled(load: SliceLoad, frame: DataFrame, labels: Mapping[str, str], content: _Content) -> DataFrame:
    """Return the slice's rows joined with the table's rows of the same keys, labelled."""
    from pyspark.sql import functions

    columns, keys = _columns(load), _keys(load)
    target = _target(load, content)
    if (load.state.rows or 0) > LARGE_TARGET and load.statistics.records <= SMALL_SLICE:
        own = [f"_lakewright_own_{number}" for number in range(len(keys))]
        wanted = functions.broadcast(frame.selectExpr(*_as(columns, own)))
        target = target.join(wanted, _equal(keys, own), "left_semi")
    joined = frame.join(target, _equal(columns, keys), "left")
    return joined.withColumn(LABEL, functions.expr(case_sql(labels)))


def _target(load: SliceLoad, content: _Content) -> DataFrame:
    """Return the columns of the table's rows that labels depend on, for rows that a slice can change."""
    if load.sequence is not None and load.request.strategy is Strategy.HISTORIC:
        return _last_states(load, load.sequence)
    system, (key, *others) = load.system, _columns(load)
    condition = f"{load.open_condition()} and {load.match_condition('t')}"
    target = load.target().alias("t")
    sequence = [] if load.sequence is None else [f"{load.target_sequence(load.sequence)} as {_SEQUENCE}"]
    return target.where(condition).selectExpr(
        *_as((key, *others), _keys(load)),
        *_as(content.columns, content.known),
        f"coalesce({name_sql(system.deleted)}, false) as {_IS_DELETED}",
        *sequence,
        *place_of(load),
    )


def place_of(load: SliceLoad) -> tuple[str, ...]:
    """Return the column with the place of the table's row, if its files are known."""
    return () if load.files is None else (PLACE,)


def _last_states(load: SliceLoad, sequence: str) -> DataFrame:
    """Return one row for each record of the table: its current version, or the latest that a delete closed.

    With `sequence_by` the latter stands for the record as a deleted one.
    """
    from pyspark.sql import functions

    system, value, is_open = load.system, load.target_sequence(sequence), load.open_condition()
    wanted = f"(({is_open}) or ({name_sql(system.deleted)})) and {load.match_condition('t')}"
    place = place_of(load)
    fields = (f"{is_open} as is_open", f"{value} as sequence", f"{name_sql(system.hash)} as hash", *place)
    state = f"struct({', '.join(fields)})"
    rows = load.target().alias("t").where(wanted)
    keys = _keys(load)
    latest = rows.groupBy(*map(functions.expr, _as(_columns(load), keys))).agg(
        functions.expr(f"max({state}) as state")
    )
    return latest.selectExpr(
        *keys,
        f"state.hash as {_CONTENT}_0",
        f"not state.is_open as {_IS_DELETED}",
        f"state.sequence as {_SEQUENCE}",
        *(f"state.{name} as {name}" for name in place),
    )


def _changed(load: SliceLoad, labelled: DataFrame, content: _Content) -> DataFrame:
    """Return one row for each action; columns that an action does not need are null.

    Hashes that the comparison did not need are computed here, for changed rows alone. Rows that arrive
    deleted are not written, or as tombstones.
    """
    system = load.system
    key, actions = name_sql(load.matched[0]), actions_of(load)
    cases = " ".join(
        f"when {text_sql(label)} then array({', '.join(_action_sql(load, name, key) for name in names)})"
        for label, names in actions.items()
    )
    changed = labelled.where(one_of_sql(LABEL, actions))
    computed = {} if system.key in load.matched else {system.key: load.prepared.key_sql}
    computed |= {system.hash: load.prepared.hash_sql} if content.is_of_values else {}
    changed = with_columns(changed, computed)
    changed = load.as_tombstones(changed) if load.keeps_tombstones else changed
    changed = changed.selectExpr("*", f"inline(case {LABEL} {cases} end) as ({ACTION}, {MATCH})")
    place = (f"if({MATCH} is null, null, {name}) as {name}" for name in place_of(load))
    is_whole, patched = one_of_sql(ACTION, (INSERT, UPDATE)), _patched(load)
    columns = (
        (
            sql,
            sql if name in load.matched[1:] else f"if({is_whole}, {sql}, {patched.get(sql.lower(), 'null')})",
        )
        for name, sql in ((name, name_sql(name)) for name in load.fit.columns)
    )
    return changed.selectExpr(*(f"{value} as {sql}" for sql, value in columns), ACTION, MATCH, *place)


def _patched(load: SliceLoad) -> dict[str, str]:
    """Return the columns, in lower case, that rows with the action `patch` need, with SQL of their values."""
    system, deleted = load.system, name_sql(load.system.deleted)
    found = {
        deleted: deleted,
        name_sql(system.last_seen): name_sql(system.last_seen),
        name_sql(system.valid_to): name_sql(system.valid_from),
    }
    if load.sequence is not None:
        found[name_sql(load.sequence)] = f"if({deleted}, {name_sql(load.sequence)}, null)"
    return {name.lower(): sql for name, sql in found.items()}


def _action_sql(load: SliceLoad, action: str, key: str) -> str:
    # The new version of a record must not match its current one.
    is_new = action == INSERT and load.request.strategy is Strategy.HISTORIC
    match = f"if(false, {key}, null)" if is_new else key
    return f"struct({text_sql(action)} as {ACTION}, {match} as {MATCH})"


def _missing_rows(load: SliceLoad, missing: DataFrame) -> DataFrame:
    """Return the rows that are missing from the slice as rows of the write."""
    system = load.system
    is_historic = load.request.strategy is Strategy.HISTORIC
    return missing.selectExpr(
        f"{text_sql(PATCH)} as {ACTION}",
        f"{name_sql(system.key)} as {MATCH}",
        *place_of(load),
        f"true as {name_sql(system.deleted)}",
        *([instant_column_sql(system.valid_to, load.request.at)] if is_historic else ()),
    )
