"""Which files of a table can be left out because no row of the slice can match in them.

The primary key is a hash, spread evenly over all files; the columns it was made from aren't.

Source: `processing-strategies.md`, "Merge Strategy" (applies partition filters to limit merge scope); where
that is safe is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lakewright.strategies.literals import value_sql
from lakewright.transform.sql import name_sql

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity
    from lakewright.strategies.facts import Range
    from lakewright.strategies.work import Work
    from lakewright.transform.pipeline import Prepared

__all__ = ["ranged_columns", "within_ranges"]


def ranged_columns(entity: Entity, prepared: Prepared) -> tuple[str, ...]:
    """Return the columns in silver in which matching rows have equal values.

    These are the business key's, and the partitions' where a record never leaves its partition.
    """
    partitions = prepared.partitions if entity.settings.partition_moves == "never" else ()
    return tuple(dict.fromkeys((*prepared.key_columns, *partitions)))


def within_ranges(work: Work, alias: str) -> str:
    """Return the condition, over the target alone, that every row matching one of the slice meets.

    Args:
        work: The slice and its table.
        alias: Of the target in the query.
    """
    retyped = work.fit.drift.retyped or {}
    # A bound of another type need not fit into the table's.
    types = {column.name: column.type.ddl for column in work.state.columns if column.name not in retyped}
    conditions = [
        _within(name_sql(alias, name), range_, types[name])
        for name, range_ in work.facts.ranges.items()
        if name in types
    ]
    return " and ".join(_nonempty(conditions)) or "true"


def _within(column: str, range_: Range, kind: str) -> str:
    if range_.low is None:
        return f"{column} is null"
    inside = f"{column} between {value_sql(range_.low, kind)} and {value_sql(range_.high, kind)}"
    return f"({inside} or {column} is null)" if range_.has_null else f"({inside})"


def _nonempty(conditions: Iterable[str]) -> list[str]:
    return [condition for condition in conditions if condition]
