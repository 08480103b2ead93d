"""Times of versions as other tools write them: as timestamps, days or texts, with values that mean no end."""

from __future__ import annotations

from collections.abc import Iterable

from lakewright.schema.sql import text_sql

__all__ = ["instant_of_sql", "sentinel_sql"]


def instant_of_sql(value: str, kind: str, zone: str) -> str:
    """Return SQL of the instant that a value stands for; null if it is none or can't be read.

    Args:
        value: SQL of the value.
        kind: Name of its type in Spark.
        zone: Time zone of values without an offset.

    Example:
        >>> instant_of_sql("d", "date", "UTC")
        'try_cast(d as timestamp)'
    """
    read = f"try_cast({value} as timestamp)"
    if kind == "timestamp" or zone == "UTC":
        return read
    local = f"to_utc_timestamp({read}, {text_sql(zone)})"
    if kind != "string":
        return local
    return f"if({value} rlike '(Z|[+-][0-9]{{2}}:?[0-9]{{2}})$', {read}, {local})"


def sentinel_sql(value: str, sentinels: Iterable[str]) -> str:
    """Return SQL of whether an end stands for no end: null, or a sentinel as text, day or instant.

    Example:
        >>> sentinel_sql("e", ())
        'coalesce(e is null, false)'
    """
    tests = [f"{value} is null"]
    for text in sentinels:
        literal = text_sql(text)
        tests.append(f"cast({value} as string) = {literal}")
        is_day = f"length({literal}) = 10 and try_cast({value} as date) = try_cast({literal} as date)"
        tests.append(f"({is_day})")
        tests.append(f"try_cast({value} as timestamp) = try_cast({literal} as timestamp)")
    return " or ".join(f"coalesce({test}, false)" for test in tests)
