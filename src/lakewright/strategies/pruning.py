"""Conditions on the table by which Delta skips files that no row of the slice can match.

The primary key is a hash, spread evenly over all files, so a range of it skips nothing. The columns that it
is computed from have useful ranges.

Source: `processing-strategies.md`, "Merge Strategy" (applies partition filters to limit merge scope); the
rule for where that is safe is Lakewright's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from lakewright.schema.sql import name_sql, text_sql
from lakewright.transform.steps import instant_sql

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity
    from lakewright.strategies.slice_statistics import Range
    from lakewright.transform.pipeline import PreparedSlice

__all__ = ["prunable_columns", "range_condition", "value_sql"]

_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def prunable_columns(entity: Entity, prepared: PreparedSlice) -> tuple[str, ...]:
    """Return the silver columns that have equal values in matching rows of slice and table.

    These are the columns of the business key. Partition columns are included only with
    `partition_moves: never`: otherwise a record may have moved, and its row is in another partition.
    """
    partitions = prepared.partitions if entity.settings.partition_moves == "never" else ()
    return tuple(dict.fromkeys((*prepared.key_columns, *partitions)))


def range_condition(ranges: Mapping[str, Range], types: Mapping[str, str], *, alias: str) -> str:
    """Return the condition that every row of the table meets which matches a row of the slice.

    Args:
        ranges: Silver column to the range of its values in the slice.
        types: Silver column to its type in the table; other columns are ignored.
        alias: Alias of the table in the query.

    Example:
        >>> from lakewright.strategies.slice_statistics import Range
        >>> ranges = {"id": Range(1, 9, has_null=False), "v": Range(1, 1, has_null=True)}
        >>> range_condition(ranges, {"id": "int"}, alias="t")
        "(`t`.`id` between cast('1' as int) and cast('9' as int))"
    """
    conditions = [
        _in_range(name_sql(alias, name), range_, types[name])
        for name, range_ in ranges.items()
        if name in types
    ]
    return " and ".join(conditions) or "true"


def _in_range(column: str, range_: Range, type_sql: str) -> str:
    if range_.low is None:
        return f"{column} is null"
    inside = f"{column} between {value_sql(range_.low, type_sql)} and {value_sql(range_.high, type_sql)}"
    return f"({inside} or {column} is null)" if range_.has_null else f"({inside})"


def value_sql(value: object, type_sql: str) -> str:
    r"""Return a Python value as a typed literal of Spark SQL; it is never spliced in as text.

    Args:
        value: A number, text, date or time; a time without a zone is in UTC.
        type_sql: The type in Spark's SQL.

    Example:
        >>> value_sql(1.5, "decimal(10,2)"), value_sql(date(2024, 5, 1), "timestamp")
        ("cast('1.5' as decimal(10,2))", "cast(cast('2024-05-01' as date) as timestamp)")
        >>> value_sql(7.0, "bigint")
        "cast(cast('7.0' as decimal(38,18)) as bigint)"
    """
    if isinstance(value, datetime):
        moment = (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
        if type_sql == "timestamp_ntz":
            return f"cast({text_sql(moment.replace(tzinfo=None).isoformat(' '))} as timestamp_ntz)"
        return f"cast({instant_sql(moment)} as {type_sql})"
    if isinstance(value, date):
        return f"cast(cast({text_sql(value.isoformat())} as date) as {type_sql})"
    if isinstance(value, (float, Decimal)) and type_sql in _INTEGERS:
        # In ANSI mode Spark refuses to cast a text with a decimal point to an integer, even '7.0'.
        return f"cast(cast({text_sql(str(value))} as decimal(38,18)) as {type_sql})"
    return f"cast({text_sql(str(value))} as {type_sql})"
