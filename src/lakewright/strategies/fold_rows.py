"""The rows of several slices, in order, as the rows that one commit of all of them writes.

Each row of a slice, and each row of the table that it may meet, is an event of its record. One pass over the
events of a record, in the order of the slices, gives each the label that the strategy would give it if the
slices were processed one by one, and the rows that the table ends with. Everything here is lazy.

Source: `processing-strategies.md`, "Behavior" of the strategies; that several slices are applied in one pass
is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from lakewright.schema.sql import name_sql, text_sql
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.changes import ACTION, MATCH
from lakewright.transform.steps import instant_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.transform.system_columns import SystemColumns

__all__ = [
    "FOLD_LABEL",
    "INFERRED",
    "IS_TWICE",
    "NUMBER",
    "OF_TABLE",
    "Folding",
    "lookup_sql",
    "with_labels",
    "written_rows",
]

NUMBER = "_lakewright_slice"
"""Column with the number of a row's slice, from 0 on."""

OF_TABLE = -1
"""The number of rows that are in the table already."""

FOLD_LABEL = "_lakewright_label"
"""Column with the label of an event, see `Comparison` of the strategies; null for rows of the table."""

INFERRED = "_lakewright_inferred"
"""Column with the number of the slice from which the record is missing, so that the event's state ends."""

IS_TWICE = "_lakewright_twice"
"""Column with whether the table holds several rows that the record's events may meet."""

_GONE, _BEFORE, _IS_KNOWN = "_lakewright_gone", "_lakewright_before", "_lakewright_known"
_FIRST, _WHOLE, _SEEN, _LAST = (f"_lakewright_{name}" for name in ("first", "whole", "seen", "last"))
_UPDATED, _DELETED, _END = (f"_lakewright_{name}" for name in ("updated", "deleted", "end"))


@dataclass(frozen=True, slots=True)
class Folding:
    """How the slices of a fold are applied.

    Attributes:
        strategy: `merge` or `historic`.
        system: Names of the system columns.
        times: The processing time of each slice.
        inferring: Numbers of the slices that are the whole source, in order: records that they lack are
            deleted.
        is_seen_again: Whether equal rows, and rows that are deleted already, get a new `lastSeen`.
    """

    strategy: Strategy
    system: SystemColumns
    times: Sequence[datetime]
    inferring: Sequence[int] = ()
    is_seen_again: bool = True

    @property
    def _in_order(self) -> str:
        return f"partition by {name_sql(self.system.key)} order by {NUMBER}"

    @property
    def _of_record(self) -> str:
        return f"partition by {name_sql(self.system.key)}"

    @property
    def _before(self) -> str:
        return f"{self._in_order} rows between unbounded preceding and 1 preceding"

    @property
    def _after(self) -> str:
        return f"{self._in_order} rows between 1 following and unbounded following"

    @property
    def _from_here(self) -> str:
        return f"{self._in_order} rows between current row and unbounded following"

    def _time(self, number: str) -> str:
        return lookup_sql(map(instant_sql, self.times), number)


def lookup_sql(values: Iterable[str], number: str) -> str:
    """Return SQL of the value with a number, counted from 0; null for null.

    Example:
        >>> lookup_sql(["'a'", "'b'"], "n")
        "if(n is null, null, element_at(array('a', 'b'), n + 1))"
    """
    # In ANSI mode Spark takes an element with a null position for a value that is never null.
    return f"if({number} is null, null, element_at(array({', '.join(values)}), {number} + 1))"


def with_labels(events: DataFrame, folding: Folding) -> DataFrame:
    """Return the events with `FOLD_LABEL`, `INFERRED` and `IS_TWICE`.

    Args:
        events: Rows of the slices and the table, with `NUMBER`; those of the table need the key, the hash,
            the deleted flag and `lastSeen` only.
        folding: How the slices are applied.
    """
    system = folding.system
    hash_, deleted = name_sql(system.hash), f"coalesce({name_sql(system.deleted)}, false)"
    # Columns one after the other: an expression over a window is no part of another one's.
    events = events.selectExpr("*", f"{_inferred_sql(folding, deleted)} as {INFERRED}")
    ended = f"({deleted} or {INFERRED} is not null)"
    if folding.strategy is Strategy.HISTORIC:
        known = f"not coalesce({_GONE}, true)"
        before = f"lag({hash_}) over ({folding._in_order})"
    else:
        known = f"coalesce(count_if({NUMBER} < 0 or not {deleted}) over ({folding._before}), 0) > 0"
        is_state = f"{NUMBER} < 0 or not {deleted}"
        before = f"last(if({is_state}, {hash_}, null), true) over ({folding._before})"
    in_order = folding._in_order
    is_twice = f"coalesce(lag({NUMBER}) over ({in_order}) = {NUMBER}, false)"
    events = events.selectExpr("*", f"lag({ended}) over ({in_order}) as {_GONE}", f"{is_twice} as {IS_TWICE}")
    events = events.selectExpr("*", f"{known} as {_IS_KNOWN}", f"{before} as {_BEFORE}")
    label = _label_sql(folding, hash_, deleted)
    return events.selectExpr("*", f"{label} as {FOLD_LABEL}").drop(_GONE, _IS_KNOWN, _BEFORE)


def _inferred_sql(folding: Folding, deleted: str) -> str:
    """Return SQL of the slice by which a live record is inferred to be deleted before its next event."""
    if not folding.inferring:
        return "cast(null as int)"
    numbers = range(OF_TABLE, len(folding.times))
    following = (next((n for n in folding.inferring if n > number), None) for number in numbers)
    texts = ("cast(null as int)" if number is None else str(number) for number in following)
    next_whole = lookup_sql(texts, f"({NUMBER} + 1)")
    next_event = f"lead({NUMBER}) over ({folding._in_order})"
    is_missing = f"not {deleted} and {next_whole} < coalesce({next_event}, {len(folding.times)})"
    return f"if({is_missing}, {next_whole}, null)"


def _label_sql(folding: Folding, hash_: str, deleted: str) -> str:
    is_same = f"{hash_} <=> {_BEFORE}"
    if folding.strategy is Strategy.HISTORIC:
        cases = {
            "unknown": f"{deleted} and not {_IS_KNOWN}",
            "delete": deleted,
            "insert": f"not {_IS_KNOWN}",
            "same": is_same,
            "update": "true",
        }
    else:
        cases = {
            "unknown": f"{deleted} and not {_IS_KNOWN}",
            "deleted": f"{deleted} and {_GONE}",
            "delete": deleted,
            "insert": f"not {_IS_KNOWN}",
            "revive": _GONE,
            "same": is_same,
            "update": "true",
        }
    whens = " ".join(f"when {condition} then {text_sql(name)}" for name, condition in cases.items())
    return f"case when {NUMBER} < 0 then null {whens} end"


def written_rows(labelled: DataFrame, folding: Folding, columns: Sequence[str]) -> DataFrame:
    """Return the rows to write: the table's columns, `ACTION` and `MATCH`, the key of the table's row.

    The actions are `insert`, `update` (all columns) and `patch` (deleted flag and `lastSeen`) of Merge,
    `insert`, `close` and `delete` of Historic.

    Args:
        labelled: What `with_labels` returns.
        folding: How the slices are applied.
        columns: Names of the table's columns.
    """
    if folding.strategy is Strategy.HISTORIC:
        return _versions(labelled, folding, columns)
    return _last_states(labelled, folding, columns)


def _last_states(labelled: DataFrame, folding: Folding, columns: Sequence[str]) -> DataFrame:
    """Return the last state of each record that the slices change."""
    system = folding.system
    deleted, key = f"coalesce({name_sql(system.deleted)}, false)", name_sql(system.key)
    whole = ("insert", "update", "revive")
    seen = (*whole, "delete", *(("same", "deleted") if folding.is_seen_again else ()))
    record, rest = folding._of_record, folding._from_here
    found = labelled.selectExpr(
        "*",
        f"min({NUMBER}) over ({record}) as {_FIRST}",
        f"max(if({_is_one_of(whole)}, {NUMBER}, null)) over ({record}) as {_WHOLE}",
        f"max(if({_is_one_of(seen)}, {NUMBER}, null)) over ({record}) as {_SEEN}",
        f"last({deleted} or {INFERRED} is not null) over ({rest}) as {_LAST}",
    )
    # Only the row of the table can end differently without another row of its record taking its place.
    is_patched = f"{NUMBER} < 0 and {_WHOLE} is null and ({_SEEN} is not null or {_LAST} <> {deleted})"
    found = found.where(f"{NUMBER} = {_WHOLE} or ({is_patched})")
    values = {
        system.deleted: _LAST,
        system.last_seen: f"if({_SEEN} is null, {name_sql(system.last_seen)}, {folding._time(_SEEN)})",
    }
    action = f"case when {NUMBER} < 0 then 'patch' when {_FIRST} < 0 then 'update' else 'insert' end"
    return found.selectExpr(
        *_selected(columns, values), f"{action} as {ACTION}", f"if({_FIRST} < 0, {key}, null) as {MATCH}"
    )


def _versions(labelled: DataFrame, folding: Folding, columns: Sequence[str]) -> DataFrame:
    """Return the new versions, and the versions of the table that end."""
    system, after = folding.system, folding._after
    key = name_sql(system.key)
    missing = f"min({INFERRED}) over ({folding._from_here})"
    found = labelled.selectExpr(
        "*",
        f"min(if({FOLD_LABEL} = 'update', {NUMBER}, null)) over ({after}) as {_UPDATED}",
        f"least(min(if({FOLD_LABEL} = 'delete', {NUMBER}, null)) over ({after}), {missing}) as {_DELETED}",
    ).selectExpr("*", f"least({_UPDATED}, {_DELETED}) as {_END}")
    found = found.where(f"{_is_one_of(('insert', 'update'))} or ({NUMBER} < 0 and {_END} is not null)")
    is_deleted = f"coalesce({_END} = {_DELETED}, false)"
    values = {
        system.valid_to: folding._time(_END),
        system.is_current: f"{_END} is null",
        system.deleted: is_deleted,
    }
    ends = f"if({is_deleted}, 'delete', 'close')"
    return found.selectExpr(
        *_selected(columns, values),
        f"if({NUMBER} < 0, {ends}, 'insert') as {ACTION}",
        f"if({NUMBER} < 0, {key}, null) as {MATCH}",
    )


def _is_one_of(labels: Iterable[str]) -> str:
    return f"coalesce({FOLD_LABEL} in ({', '.join(map(text_sql, labels))}), false)"


def _selected(columns: Sequence[str], values: Mapping[str, str]) -> list[str]:
    given = {name.lower(): sql for name, sql in values.items()}
    return [f"{given.get(name.lower(), name_sql(name))} as {name_sql(name)}" for name in columns]
