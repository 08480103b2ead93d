"""The fold: several slices are applied in one pass over them and one commit, with the metrics of each.

The table and the metrics are those of the slices processed one by one. Each row of a slice, and each row of
the table that it may meet, is an event of its record. One pass over the events of a record, in the order of
the slices, gives each its label by the rules of the strategy, and the rows that the table ends with.

Source: `processing-strategies.md`, "Behavior" and "Metrics" of the strategies; that several slices are
applied in one commit is Lakewright's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.lake.commit import FOLDED
from lakewright.lake.failpoint import reach_failpoint
from lakewright.schema.sql import name_sql
from lakewright.spark.engine import materialized
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.changes import ACTION, LABEL, LARGE_TARGET, MATCH, SMALL_SLICE, Changes, place_of
from lakewright.strategies.delete_inference import is_braked
from lakewright.strategies.preparation import NUMBER, BadSlice, Fold, lookup_sql, with_columns_of
from lakewright.strategies.rules import (
    INSERT,
    MISSING,
    PATCH,
    UPDATE,
    RecordState,
    actions_of,
    case_sql,
    labels_of,
    measures,
    one_of_sql,
)
from lakewright.strategies.summary import Summary
from lakewright.strategies.writing import create, overwrite, write_changes
from lakewright.transform.steps import instant_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_OF_TABLE = -1
"""The number of rows that are in the table already."""

_INFERRED = "_lakewright_inferred"
"""Column with the number of the slice from which the record is missing, so that the event's state ends."""

_IS_TWICE = "_lakewright_twice"
"""Column with whether the table holds several rows that the record's events may meet."""

_NEWEST, _GONE, _BEFORE, _IS_KNOWN = (f"_lakewright_{name}" for name in ("newest", "gone", "before", "known"))
_FIRST, _WHOLE, _SEEN, _LAST = (f"_lakewright_{name}" for name in ("first", "whole", "seen", "last"))
_UPDATED, _DELETED, _END = (f"_lakewright_{name}" for name in ("updated", "deleted", "end"))


class NotFoldable(Exception):
    """The slices must be processed one by one; the text says why."""


def apply_fold(fold: Fold) -> tuple[tuple[Summary, ...], int | None]:
    """Apply slices in one commit, or in none if nothing changes.

    Returns:
        The summary of each slice, and the version of the commit; None if nothing was written.

    Raises:
        BadSlice: A slice can't be processed; nothing was written.
        NotFoldable: They must be processed one by one; nothing was written.
    """
    load = fold.load
    if load.request.strategy is Strategy.FULL:
        summaries, rows = _replacing(fold)
        changes = None
    else:
        labelled = materialized(_labelled(fold, _events(fold)))
        reach_failpoint("after_compare")
        summaries = _summaries(fold, *_counted(fold, labelled))
        rows, changes = _changed(fold, labelled)
    if rows is None:
        return summaries, None
    if not load.state.exists:
        write = create(load, rows)
    else:
        write = overwrite(load, rows) if changes is None else write_changes(load, changes)
    items = [own.content(summary) for own, summary in zip(fold.slices, summaries, strict=True)]
    content = {**load.request.token.content, "hashVersion": load.prepared.form.version, FOLDED: items}
    return summaries, load.commit_content(content, write)


def _changed(fold: Fold, labelled: DataFrame) -> tuple[DataFrame | None, Changes | None]:
    """Return the rows of the table if there is none yet, else the changes; nothing if nothing changes."""
    is_historic = fold.load.request.strategy is Strategy.HISTORIC
    rows = _versions(fold, labelled) if is_historic else _last_states(fold, labelled)
    if not fold.load.state.exists:
        return rows.drop(ACTION, MATCH), None
    rows = materialized(rows)
    actions = {row[ACTION]: row["count"] for row in rows.groupBy(ACTION).count().collect()}
    return (rows, Changes(rows, (fold.load.system.key,), actions, {})) if actions else (None, None)


def _inferring(fold: Fold) -> tuple[int, ...]:
    """Return the numbers of the slices that delete the records which they lack."""
    if not fold.load.entity.settings.delete_missing:
        return ()
    numbered = enumerate(fold.slices)
    return tuple(number for number, own in numbered if own.statistics.records and not own.bad_rows)


def _events(fold: Fold) -> DataFrame:
    """Return the rows of the slices, and those of the table that they may meet."""
    from pyspark.sql import functions

    load = fold.load
    if load.is_first:
        return fold.rows
    system = load.system
    names = [name_sql(name) for name in (system.key, system.hash, system.deleted, system.last_seen)]
    place = place_of(load)
    target = load.target().where(load.open_condition()).selectExpr(*names, f"{_OF_TABLE} as {NUMBER}", *place)
    if not _inferring(fold) and (load.state.rows is None or load.state.rows > LARGE_TARGET):
        keys = fold.rows.select(system.key).distinct()
        if load.statistics.records <= SMALL_SLICE:
            keys = functions.broadcast(keys)
        target = target.join(keys, system.key, "left_semi")
    schema, zone = fold.rows.drop(NUMBER).schema, fold.load.prepared.form.zone
    return fold.rows.unionByName(with_columns_of(target, schema, zone, kept=place), allowMissingColumns=True)


def _window(fold: Fold, rows: str | None = None) -> str:
    """Return the window of a record's events in order, or of those between two bounds."""
    between = "" if rows is None else f" rows between {rows}"
    return f"partition by {name_sql(fold.load.system.key)} order by {NUMBER}{between}"


_BEFORE_IT = "unbounded preceding and 1 preceding"
_AFTER_IT = "1 following and unbounded following"
_FROM_IT_ON = "current row and unbounded following"


def _labelled(fold: Fold, events: DataFrame) -> DataFrame:
    """Return the events with `LABEL`, which is null for rows of the table, `_INFERRED` and `_IS_TWICE`.

    Rows of the table need the key, the hash, the deleted flag and `lastSeen` only.
    """
    load = fold.load
    hash_, deleted = name_sql(load.system.hash), f"coalesce({name_sql(load.system.deleted)}, false)"
    # Columns one after the other: an expression over a window is no part of another one's.
    events = events.selectExpr("*", f"{_inferred_sql(fold, deleted)} as {_INFERRED}")
    ended = f"({deleted} or {_INFERRED} is not null)"
    in_order, before_it = _window(fold), _window(fold, _BEFORE_IT)
    if load.request.strategy is Strategy.HISTORIC:
        known = f"not coalesce({_GONE}, true)"
        before = f"lag({hash_}) over ({in_order})"
    else:
        is_state = f"{NUMBER} < 0 or not {deleted}"
        known = f"coalesce(count_if({is_state}) over ({before_it}), 0) > 0"
        before = f"last(if({is_state}, {hash_}, null), true) over ({before_it})"
    is_twice = f"coalesce(lag({NUMBER}) over ({in_order}) = {NUMBER}, false)"
    events = events.selectExpr(
        "*", f"lag({ended}) over ({in_order}) as {_GONE}", f"{is_twice} as {_IS_TWICE}"
    )
    events = events.selectExpr("*", f"{known} as {_IS_KNOWN}", f"{before} as {_BEFORE}")
    state = RecordState(_IS_KNOWN, _GONE, f"{hash_} <=> {_BEFORE}")
    label = case_sql(labels_of(load.request.strategy, deleted, state))
    labelled = events.selectExpr("*", f"if({NUMBER} < 0, null, {label}) as {LABEL}")
    return labelled.drop(_GONE, _IS_KNOWN, _BEFORE)


def _inferred_sql(fold: Fold, deleted: str) -> str:
    """Return SQL of the slice by which a live record is inferred to be deleted before its next event."""
    inferring, count = _inferring(fold), len(fold.slices)
    if not inferring:
        return "cast(null as int)"
    following = (next((n for n in inferring if n > number), None) for number in range(_OF_TABLE, count))
    texts = ("cast(null as int)" if number is None else str(number) for number in following)
    next_whole = lookup_sql(texts, f"({NUMBER} + 1)")
    next_event = f"lead({NUMBER}) over ({_window(fold)})"
    is_missing = f"not {deleted} and {next_whole} < coalesce({next_event}, {count})"
    return f"if({is_missing}, {next_whole}, null)"


def _counted(fold: Fold, labelled: DataFrame) -> tuple[Mapping[int, Mapping[str, int]], int]:
    """Return the rows of each slice by their labels, and the rows of the table that are not deleted before.

    `MISSING` counts rows of the table.

    Raises:
        NotFoldable: The table holds several rows for a primary key.
    """
    from pyspark.sql import functions

    is_live = f"{NUMBER} < 0 and not coalesce({name_sql(fold.load.system.deleted)}, false)"
    found = labelled.groupBy(NUMBER, LABEL, _INFERRED).agg(
        functions.expr("count(1) as rows"),
        functions.expr(f"count_if({is_live}) as live"),
        functions.expr(f"count_if({_IS_TWICE}) as twice"),
    )
    rows = found.collect()
    if any(row["twice"] for row in rows):
        raise NotFoldable("the table holds several rows for a primary key")
    labels: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        if row[LABEL] is not None:
            labels[row[NUMBER]][row[LABEL]] += row["rows"]
        if row[_INFERRED] is not None:
            labels[row[_INFERRED]][MISSING] += row["rows"]
    return labels, sum(row["live"] for row in rows)


def _summaries(fold: Fold, labels: Mapping[int, Mapping[str, int]], live: int) -> tuple[Summary, ...]:
    """Return the summary that each slice would have if the slices were processed one by one.

    Raises:
        BadSlice: A slice would delete too large a share of the table.
    """
    strategy, is_first = fold.load.request.strategy, fold.load.is_first
    summaries: list[Summary] = []
    for number, own in enumerate(fold.slices):
        found: Mapping[str, int] = defaultdict(int, labels.get(number, {}))
        if not is_first and is_braked(own, found[MISSING], live):
            raise BadSlice(number)
        summary = replace(own.summary(**measures(strategy, found)), is_first=is_first).checked()
        summaries.append(summary)
        live += found["insert"] + found["revive"] - found["delete"] - found[MISSING]
        is_first = is_first and not summary.inserted
    return tuple(summaries)


def _last_states(fold: Fold, labelled: DataFrame) -> DataFrame:
    """Return the last state of each record that the slices change, as rows of the write for Merge."""
    system, actions = fold.load.system, actions_of(fold.load)
    deleted, key = f"coalesce({name_sql(system.deleted)}, false)", name_sql(system.key)
    whole = [label for label, names in actions.items() if PATCH not in names]
    record = f"partition by {key}"
    place = place_of(fold.load)
    found = labelled.selectExpr(
        *(name_sql(name) for name in labelled.columns if name not in place),
        *(f"max({name}) over ({record}) as {name}" for name in place),
        f"min({NUMBER}) over ({record}) as {_FIRST}",
        f"max(if({one_of_sql(LABEL, whole)}, {NUMBER}, null)) over ({record}) as {_WHOLE}",
        f"max(if({one_of_sql(LABEL, actions)}, {NUMBER}, null)) over ({record}) as {_SEEN}",
        f"last({deleted} or {_INFERRED} is not null) over ({_window(fold, _FROM_IT_ON)}) as {_LAST}",
    )
    # Only the row of the table can end differently without another row of its record taking its place.
    is_patched = f"{NUMBER} < 0 and {_WHOLE} is null and ({_SEEN} is not null or {_LAST} <> {deleted})"
    found = found.where(f"{NUMBER} = {_WHOLE} or ({is_patched})")
    values = {
        system.deleted: _LAST,
        system.last_seen: f"if({_SEEN} is null, {name_sql(system.last_seen)}, {_time(fold, _SEEN)})",
    }
    action = f"case when {NUMBER} < 0 then '{PATCH}' when {_FIRST} < 0 then '{UPDATE}' else '{INSERT}' end"
    return _written(fold, found, values, action, match=f"if({_FIRST} < 0, {key}, null)")


def _versions(fold: Fold, labelled: DataFrame) -> DataFrame:
    """Return the new versions, and the versions of the table that end, as rows of the write for Historic."""
    system, after_it = fold.load.system, _window(fold, _AFTER_IT)
    missing = f"min({_INFERRED}) over ({_window(fold, _FROM_IT_ON)})"
    found = labelled.selectExpr(
        "*",
        f"min(if({LABEL} = 'update', {NUMBER}, null)) over ({after_it}) as {_UPDATED}",
        f"least(min(if({LABEL} = 'delete', {NUMBER}, null)) over ({after_it}), {missing}) as {_DELETED}",
    ).selectExpr("*", f"least({_UPDATED}, {_DELETED}) as {_END}")
    found = found.where(f"{one_of_sql(LABEL, ('insert', 'update'))} or ({NUMBER} < 0 and {_END} is not null)")
    values = {
        system.valid_to: _time(fold, _END),
        system.is_current: f"{_END} is null",
        system.deleted: f"coalesce({_END} = {_DELETED}, false)",
    }
    action, key = f"if({NUMBER} < 0, '{PATCH}', '{INSERT}')", name_sql(system.key)
    return _written(fold, found, values, action, match=f"if({NUMBER} < 0, {key}, null)")


def _time(fold: Fold, number: str) -> str:
    """Return SQL of the processing time of a slice."""
    return lookup_sql((instant_sql(own.request.at) for own in fold.slices), number)


def _written(fold: Fold, rows: DataFrame, values: Mapping[str, str], action: str, *, match: str) -> DataFrame:
    """Return rows of the write: the table's columns, some with other values, `ACTION`, `MATCH`, `PLACE`."""
    given = {name.lower(): sql for name, sql in values.items()}
    columns = (f"{given.get(name.lower(), name_sql(name))} as {name_sql(name)}" for name in fold.columns)
    return rows.selectExpr(*columns, f"{action} as {ACTION}", f"{match} as {MATCH}", *place_of(fold.load))


def _replacing(fold: Fold) -> tuple[tuple[Summary, ...], DataFrame | None]:
    """Return what slices of the strategy Full do, and the rows that they leave; None if none replaces rows.

    The last slice counts, or the last one of each partition.
    """
    has_table = fold.load.state.exists
    summaries = tuple(
        replace(
            own.summary(inserted=own.statistics.records), is_first=number == 0 and not has_table
        ).checked()
        for number, own in enumerate(fold.slices)
    )
    last = _last_writer(fold)
    if last is None:
        return summaries, None
    partitions = ", ".join(map(name_sql, fold.load.prepared.partitions))
    rows = fold.rows.where(f"{NUMBER} = {last}")
    if partitions:
        newest = f"max({NUMBER}) over (partition by {partitions}) as {_NEWEST}"
        rows = fold.rows.selectExpr("*", newest).where(f"{NUMBER} = {_NEWEST}")
    return summaries, rows.selectExpr(*map(name_sql, fold.columns))


def _last_writer(fold: Fold) -> int | None:
    """Return the number of the last slice that replaces rows; None if none does.

    Raises:
        BadSlice: An empty slice would empty the table.
    """
    load = fold.load
    is_filled = load.state.exists and not load.state.is_empty
    last = None if load.state.exists else 0
    for number, own in enumerate(fold.slices):
        if own.statistics.records:
            last, is_filled = number, True
        elif is_filled and not load.prepared.partitions:
            if not load.entity.settings.allow_empty:
                raise BadSlice(number)
            last, is_filled = number, False
    return last
