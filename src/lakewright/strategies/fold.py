"""The fold: several slices are applied in one pass over them and one commit, with the metrics of each.

The table and the metrics are those of the slices processed one by one.

Source: `processing-strategies.md`, "Behavior" and "Metrics" of the strategies; that several slices are
applied in one commit is Lakewright's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.lake.commit import FOLDED
from lakewright.lake.failpoint import reach_failpoint
from lakewright.schema.sql import name_sql
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.changes import ACTION, LARGE_TARGET, SMALL_SLICE, Changes
from lakewright.strategies.delete_inference import trips_brake
from lakewright.strategies.fold_rows import (
    FOLD_LABEL,
    INFERRED,
    IS_TWICE,
    NUMBER,
    OF_TABLE,
    Folding,
    with_labels,
    written_rows,
)
from lakewright.strategies.fold_sources import BadSlice, Fold, with_columns_of
from lakewright.strategies.full import overwrite
from lakewright.strategies.summary import Summary
from lakewright.strategies.write import Clause, create, write_changes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["NotFoldable", "apply_fold"]


_NEWEST = "_lakewright_newest"


class NotFoldable(Exception):
    """The slices must be processed one by one; the text says why."""


@dataclass(frozen=True, slots=True)
class _Counts:
    """What the slices do to the table.

    Attributes:
        labels: Number of a slice to its label to the number of its rows.
        inferred: Number of a slice to the number of rows that it deletes by lacking them.
        live: Rows of the table that are not deleted, before the first slice.
    """

    labels: Mapping[int, Mapping[str, int]]
    inferred: Mapping[int, int]
    live: int


def apply_fold(fold: Fold) -> tuple[tuple[Summary, ...], int | None]:
    """Apply slices in one commit, or in none if nothing changes.

    Returns:
        The summary of each slice, and the version of the commit; None if nothing was written.

    Raises:
        BadSlice: A slice can't be processed; nothing was written.
        NotFoldable: They must be processed one by one; nothing was written.
    """
    if fold.load.request.strategy is Strategy.FULL:
        return _replace_rows(fold)
    load = fold.load
    folding = Folding(
        load.request.strategy,
        load.system,
        [request.at for request in fold.requests],
        _inferring(fold),
        is_seen_again=load.entity.settings.last_seen == "column",
    )
    labelled = with_labels(_events(fold, folding), folding).localCheckpoint()
    reach_failpoint("after_compare")
    summaries = _summaries(fold, _counted(labelled, folding))
    rows = written_rows(labelled, folding, fold.columns)
    write = _write(fold, rows)
    if write is None:
        return summaries, None
    return summaries, load.commit_content(_content(fold, summaries), write)


def _inferring(fold: Fold) -> tuple[int, ...]:
    """Return the numbers of the slices that delete the records which they lack."""
    if not fold.load.entity.settings.delete_missing:
        return ()
    counts = enumerate(zip(fold.statistics, fold.bad_rows, strict=True))
    return tuple(number for number, (own, bad) in counts if own.records and not bad)


def _events(fold: Fold, folding: Folding) -> DataFrame:
    """Return the rows of the slices, and those of the table that they may meet."""
    from pyspark.sql import functions

    load = fold.load
    if load.is_first:
        return fold.rows
    system = load.system
    names = [name_sql(name) for name in (system.key, system.hash, system.deleted, system.last_seen)]
    is_historic = folding.strategy is Strategy.HISTORIC
    target = load.target().where(f"{name_sql(system.valid_to)} is null" if is_historic else "true")
    target = target.selectExpr(*names, f"{OF_TABLE} as {NUMBER}")
    if not folding.inferring and (load.state.rows is None or load.state.rows > LARGE_TARGET):
        keys = fold.rows.select(system.key).distinct()
        if load.statistics.records <= SMALL_SLICE:
            keys = functions.broadcast(keys)
        target = target.join(keys, system.key, "left_semi")
    return fold.rows.unionByName(with_columns_of(target, fold.rows.drop(NUMBER).schema))


def _counted(labelled: DataFrame, folding: Folding) -> _Counts:
    deleted = f"coalesce({name_sql(folding.system.deleted)}, false)"
    is_live = f"{NUMBER} < 0 and not {deleted}"
    groups = labelled.groupBy(NUMBER, FOLD_LABEL, INFERRED)
    from pyspark.sql import functions

    found = groups.agg(
        functions.expr("count(1) as rows"),
        functions.expr(f"count_if({is_live}) as live"),
        functions.expr(f"count_if({IS_TWICE}) as twice"),
    ).collect()
    if any(row["twice"] for row in found):
        raise NotFoldable("the table holds several rows for a primary key")
    labels: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    inferred: dict[int, int] = defaultdict(int)
    for row in found:
        if row[FOLD_LABEL] is not None:
            labels[row[NUMBER]][row[FOLD_LABEL]] += row["rows"]
        if row[INFERRED] is not None:
            inferred[row[INFERRED]] += row["rows"]
    return _Counts(labels, inferred, sum(row["live"] for row in found))


def _summaries(fold: Fold, counts: _Counts) -> tuple[Summary, ...]:
    """Return the summary that each slice would have if the slices were processed one by one.

    Raises:
        BadSlice: A slice would delete too large a share of the table.
    """
    load, live = fold.load, counts.live
    is_first = load.is_first
    summaries: list[Summary] = []
    inferring = set(_inferring(fold))
    for number, own in enumerate(fold.statistics):
        found, inferred = counts.labels.get(number, {}), counts.inferred.get(number, 0)
        settings = load.entity.settings
        if number in inferring and not is_first and trips_brake(settings, inferred, live):
            raise BadSlice(number)
        counted = _MEASURES[load.request.strategy](found, inferred)
        bad = len(fold.bad_rows[number])
        summary = Summary(
            load.request.strategy,
            records_in_slice=own.records + bad,
            quarantined=bad,
            is_first=is_first,
            **counted,
        ).checked()
        summaries.append(summary)
        live += found.get("insert", 0) + found.get("revive", 0) - found.get("delete", 0) - inferred
        is_first = is_first and not summary.inserted
    return tuple(summaries)


def _of_merge(found: Mapping[str, int], inferred: int) -> dict[str, int]:
    count = defaultdict(int, found)
    changed = count["update"] + count["revive"]
    return {
        "inserted": count["insert"],
        "updated": changed + count["same"],
        "deleted": count["delete"] + count["deleted"] + count["unknown"],
        "changed": changed,
        "without_row": count["unknown"],
        "inferred_deletes": inferred,
    }


def _of_historic(found: Mapping[str, int], inferred: int) -> dict[str, int]:
    count = defaultdict(int, found)
    return {
        "inserted": count["insert"],
        "updated": count["update"],
        "deleted": inferred,
        "unchanged": count["same"],
        "changed": count["update"],
        "closed": count["delete"] + count["unknown"],
        "without_row": count["unknown"],
        "inferred_deletes": inferred,
    }


_MEASURES: Mapping[Strategy, Callable[[Mapping[str, int], int], dict[str, int]]] = {
    Strategy.MERGE: _of_merge,
    Strategy.HISTORIC: _of_historic,
}


def _write(fold: Fold, rows: DataFrame) -> Callable[[], None] | None:
    """Return the write of the rows; None if there is nothing to write to an existing table."""
    load, system = fold.load, fold.load.system
    columns = [name_sql(name) for name in fold.columns]
    if not load.state.exists:
        return create(load, rows.selectExpr(*columns))
    rows = rows.localCheckpoint()
    actions = {row[ACTION]: row["count"] for row in rows.groupBy(ACTION).count().collect()}
    if not actions:
        return None
    deleted, seen, end = (name_sql(name) for name in (system.deleted, system.last_seen, system.valid_to))
    closed = {end: f"s.{end}", name_sql(system.is_current): "false"}
    if load.request.strategy is Strategy.HISTORIC:
        clauses, target = (
            [Clause("close", closed), Clause("delete", {**closed, deleted: "true"})],
            f"t.{end} is null",
        )
    else:
        patched = {deleted: f"s.{deleted}", seen: f"s.{seen}"}
        clauses, target = [Clause("update"), Clause("patch", patched)], "true"
    inserts = actions.get("insert", 0)
    return write_changes(
        load,
        Changes(rows, (system.key,), actions, frozenset(actions)),
        clauses,
        target=target,
        inserts=inserts,
        matches=sum(actions.values()) - inserts,
    )


def _replace_rows(fold: Fold) -> tuple[tuple[Summary, ...], int | None]:
    """Apply the slices of the strategy Full: the last one counts, or the last one of each partition."""
    load = fold.load
    summaries = _full_summaries(fold)
    partitions = [name_sql(name) for name in load.prepared.partitions]
    columns = [name_sql(name) for name in fold.columns]
    last = _last_writer(fold)
    if last is None:
        return summaries, None
    if partitions:
        newest = f"max({NUMBER}) over (partition by {', '.join(partitions)}) as {_NEWEST}"
        rows = fold.rows.selectExpr("*", newest).where(f"{NUMBER} = {_NEWEST}")
    else:
        rows = fold.rows.where(f"{NUMBER} = {last}")
    rows = rows.selectExpr(*columns)
    write = overwrite(load, rows) if load.state.exists else create(load, rows)
    return summaries, load.commit_content(_content(fold, summaries), write)


def _full_summaries(fold: Fold) -> tuple[Summary, ...]:
    exists = fold.load.state.exists
    return tuple(
        Summary(
            Strategy.FULL,
            records_in_slice=own.records + len(bad),
            inserted=own.records,
            quarantined=len(bad),
            is_first=number == 0 and not exists,
        ).checked()
        for number, (own, bad) in enumerate(zip(fold.statistics, fold.bad_rows, strict=True))
    )


def _last_writer(fold: Fold) -> int | None:
    """Return the number of the last slice that replaces rows; None if none does.

    Raises:
        BadSlice: An empty slice would empty the table.
    """
    load = fold.load
    is_filled = load.state.exists and not load.state.is_empty
    last = None if load.state.exists else 0
    for number, own in enumerate(fold.statistics):
        if own.records:
            last, is_filled = number, True
        elif is_filled and not load.prepared.partitions:
            if not load.entity.settings.allow_empty:
                raise BadSlice(number)
            last, is_filled = number, False
    return last


def _content(fold: Fold, summaries: tuple[Summary, ...]) -> dict[str, Any]:
    """Return the content of the commit: what each slice's own commit would hold, in order."""
    whole = fold.load.request.token.content
    items = []
    for request, own, drift, summary in zip(
        fold.requests, fold.statistics, fold.drifts, summaries, strict=True
    ):
        marks = {column: mark.as_json() for column, mark in own.watermarks.items()}
        item = {**request.token.content, "watermarks": marks, "metrics": summary.as_json()}
        items.append({**item, "drift": drift.as_json()} if drift else item)
    return {**whole, "hashVersion": fold.load.prepared.form.version, FOLDED: items}
