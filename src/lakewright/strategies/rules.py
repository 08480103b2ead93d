"""The rules of Merge and Historic: what a row of a slice means for its record, and what is written for it.

A row gets the label of the first condition that holds. The label determines the actions, and what the row
counts as. One slice and a fold of several are labelled by the same rules.

Source: `processing-strategies.md`, "Behavior" and "Metrics" of Merge and Historic; that deleted records can
come back, that deletes of unknown keys are ignored, or with `sequence_by` kept as tombstones, and half-open
intervals are Lakewright's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakewright.schema.sql import name_sql, text_sql
from lakewright.spec.models.entity import Strategy

if TYPE_CHECKING:
    from lakewright.strategies.slice_load import SliceLoad


INSERT, UPDATE, PATCH = "insert", "update", "patch"
"""Actions: a row is inserted, replaces the table's row, or changes only system columns of the table's row."""

MISSING = "missing"
"""Label of rows of the table that delete inference found missing from a slice."""

OUTDATED = "outdated"
"""Label of rows of the slice that are older than the table's row; they change nothing."""


@dataclass(frozen=True, slots=True)
class RecordState:
    """The state of a record before a row of a slice, as conditions in SQL.

    Attributes:
        is_known: The record has a row (Merge) or a current version (Historic).
        is_gone: Its row is deleted; of Merge only.
        is_same: The row of the slice has the hash of the record.
        is_latest: A row that arrives deleted says nothing that the record does not have.
        is_outdated: The record has a greater value of `sequence_by`; None without one.
    """

    is_known: str
    is_gone: str
    is_same: str
    is_latest: str = "true"
    is_outdated: str | None = None


def labels_of(strategy: Strategy, deleted: str, state: RecordState) -> dict[str, str]:
    """Return the labels with the conditions of the rows that get them; the first one that holds decides.

    Args:
        strategy: Merge or Historic.
        deleted: SQL of whether a row arrives deleted.
        state: The state of its record.
    """
    is_merge = strategy is Strategy.MERGE
    return {
        **({} if state.is_outdated is None else {OUTDATED: state.is_outdated}),
        "unknown": f"{deleted} and not {state.is_known}",
        **({"deleted": f"{deleted} and {state.is_gone} and {state.is_latest}"} if is_merge else {}),
        "delete": deleted,
        "insert": f"not {state.is_known}",
        **({"revive": state.is_gone} if is_merge else {}),
        "same": state.is_same,
        "update": "true",
    }


def actions_of(load: SliceLoad) -> dict[str, tuple[str, ...]]:
    """Return the actions of labels; rows with other labels are only counted."""
    if load.request.strategy is Strategy.HISTORIC:
        return {"insert": (INSERT,), "update": (PATCH, INSERT), "delete": (PATCH,), MISSING: (PATCH,)}
    is_seen_again = load.entity.settings.last_seen == "column"
    return {
        "insert": (INSERT,),
        **({"unknown": (INSERT,)} if load.keeps_tombstones else {}),
        "update": (UPDATE,),
        "revive": (UPDATE,),
        "delete": (PATCH,),
        MISSING: (PATCH,),
        **({"same": (PATCH,), "deleted": (PATCH,)} if is_seen_again else {}),
    }


def patch_of(load: SliceLoad) -> dict[str, str]:
    """Return what the action `patch` assigns: column to SQL over the row to write, `s`, and the table's, `t`.

    A value of `s` that is null leaves that of the table as it is.
    """
    system, deleted = load.system, name_sql(load.system.deleted)
    found = {deleted: f"s.{deleted} or t.{deleted}"}
    if load.request.strategy is Strategy.HISTORIC:
        end = name_sql(system.valid_to)
        found |= {end: f"s.{end}", name_sql(system.is_current): "false"}
    kept = () if load.request.strategy is Strategy.HISTORIC else (system.last_seen,)
    for name in map(name_sql, (*kept, *(() if load.sequence is None else (load.sequence,)))):
        found[name] = f"coalesce(s.{name}, t.{name})"
    return found


_MEASURES: Mapping[Strategy, Mapping[str, tuple[str, ...]]] = {
    Strategy.FULL: {"insert": ("inserted",), "delete": ("deleted",), "unknown": ("deleted", "without_row")},
    Strategy.MERGE: {
        "insert": ("inserted",),
        "update": ("updated", "changed"),
        "revive": ("updated", "changed"),
        "same": ("updated",),
        "delete": ("deleted",),
        "deleted": ("deleted",),
        "unknown": ("deleted", "without_row"),
        MISSING: ("inferred_deletes",),
        OUTDATED: ("outdated",),
    },
    Strategy.HISTORIC: {
        "insert": ("inserted",),
        "update": ("updated", "changed"),
        "same": ("unchanged",),
        "delete": ("closed",),
        "unknown": ("closed", "without_row"),
        MISSING: ("deleted", "inferred_deletes"),
        OUTDATED: ("outdated",),
    },
}
"""What rows with a label count as in the summary."""


def measures(strategy: Strategy, counts: Mapping[str, int]) -> Counter[str]:
    """Return the numbers of a summary, given the number of rows with each label.

    Example:
        >>> dict(measures(Strategy.HISTORIC, {"update": 2, "unknown": 1}))
        {'updated': 2, 'changed': 2, 'closed': 1, 'without_row': 1}
    """
    found: Counter[str] = Counter()
    for label, count in counts.items():
        for name in _MEASURES[strategy][label]:
            found[name] += count
    return found


def case_sql(labels: Mapping[str, str]) -> str:
    """Return SQL of the first label whose condition holds.

    Example:
        >>> case_sql({"insert": "k is null", "update": "true"})
        "case when k is null then 'insert' when true then 'update' end"
    """
    whens = " ".join(f"when {condition} then {text_sql(label)}" for label, condition in labels.items())
    return f"case {whens} end"


def one_of_sql(value: str, texts: Iterable[str]) -> str:
    """Return SQL of whether a value is one of some texts; false for null.

    Example:
        >>> one_of_sql("label", ["insert"])
        "coalesce(label in ('insert'), false)"
    """
    return f"coalesce({value} in ({', '.join(map(text_sql, texts)) or 'null'}), false)"
