"""Delete inference: rows of the target that a slice should have brought again and didn't.

Source: `processing-strategies.md`, "Delete Inference".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from lakewright.errors import DeleteBrakeError
from lakewright.spec.models.entity import Strategy
from lakewright.spec.models.watermark import Watermark
from lakewright.strategies.literals import value_sql
from lakewright.strategies.pruning import within_ranges
from lakewright.transform.sql import name_sql

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity
    from lakewright.strategies.work import Work

__all__ = ["FREE_DELETES", "is_too_many", "joined", "reached", "refuse_many", "window"]

FREE_DELETES = 1_000
"""Inferred deletes that are never too many."""


def window(work: Work, *alias: str) -> str | None:
    """Return the condition that the target's rows in the slice's window meet; None if nothing is inferred.

    Nothing is without `delete_missing`, without a previous watermark, and for an empty slice. Rows with a
    null watermark are outside.

    Args:
        work: The work.
        *alias: Of the target in the query, where it has one.
    """
    entity = work.entity
    if not entity.settings.delete_missing or work.facts.records == 0:
        return None
    if entity.settings.delete_scope == "full":
        return "true"
    columns = work.prepared.watermarks
    if not columns or not all(c in work.lower_ends and c in work.facts.watermarks for c in columns):
        return None
    types = {column.name.lower(): column.type.ddl for column in work.state.columns}
    above = ">" if entity.settings.delete_scope == "open" else ">="
    conditions: dict[str, str] = {}
    for column, name in columns.items():
        kind = types.get(name.lower())
        if kind is None:
            return None
        low = value_sql(work.lower_ends[column], kind)
        high = value_sql(work.facts.watermarks[column].python, kind)
        value = name_sql(*alias, name)
        conditions[column] = f"{value} {above} {low} and {value} <= {high}"
    return joined([(mark, conditions[mark.column_name]) for mark in entity.watermarks])


def reached(work: Work, inferred: int) -> str:
    """Return the condition, over the target as `t`, that every row meets which a slice changes.

    Args:
        work: The work.
        inferred: Rows that are missing from the slice.
    """
    ranges = within_ranges(work, "t")
    return f"(({ranges}) or ({window(work, 't')}))" if inferred else ranges


def joined(conditions: Sequence[tuple[Watermark, str]]) -> str:
    """Return the conditions of watermarks as one.

    Each is joined to all before it by its `operation`. Neighbours of one `operation_group` stand in brackets,
    which are joined by the operation of their first.

    Example:
        >>> from lakewright.spec.models.watermark import Operation
        >>> mark = Watermark(column_name="a", expression="${last_value}")
        >>> joined([(mark, "a > 1"), (mark.model_copy(update={"operation": Operation.OR}), "b > 1")])
        '((a > 1) or (b > 1))'
    """
    text = ""
    for _, neighbours in groupby(conditions, lambda each: each[0].operation_group):
        inner = ""
        group = list(neighbours)
        for mark, condition in group:
            inner = f"({inner} {mark.operation.value} ({condition}))" if inner else f"({condition})"
        text = f"({text} {group[0][0].operation.value} {inner})" if text else inner
    return text


def is_too_many(entity: Entity, inferred: int, rows: int) -> bool:
    """Return whether so many inferred deletes, of so many rows in the window, are taken for a mistake."""
    return inferred > FREE_DELETES and inferred > entity.settings.max_delete_ratio * rows


def refuse_many(work: Work, inferred: int, rows: int) -> None:
    """Return where so many inferred deletes may be right.

    Args:
        work: The work.
        inferred: Rows that would be flagged.
        rows: Rows in the window that aren't deleted yet.

    Raises:
        DeleteBrakeError: There are more than `FREE_DELETES`, and more than the entity's part of the window.
    """
    if not is_too_many(work.entity, inferred, rows):
        return
    kind = "soft-deleted" if work.entity.strategy is Strategy.MERGE else "closed"
    raise DeleteBrakeError(
        f"{inferred} of the {rows} rows in the slice's window are missing from it and would be {kind}; "
        f"max_delete_ratio allows {work.entity.settings.max_delete_ratio:.0%}",
        remedy="Check that the slice is whole. If it is, raise max_delete_ratio and resolve the item.",
        details={"inferred": inferred, "rows": rows},
    )
