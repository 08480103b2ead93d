"""Values as literals of Spark SQL, typed and never spliced as text.

Source: rules of entities, watermarks: "the value is bound typed".
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

from lakewright.transform.sql import text_sql
from lakewright.transform.steps import instant_sql

__all__ = ["value_sql"]

_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def value_sql(value: object, kind: str) -> str:
    r"""Return a Python value as SQL of the given type; a time without zone is UTC.

    Args:
        value: A number, text, date or time.
        kind: The type in Spark's SQL.

    Example:
        >>> value_sql(1.5, "decimal(10,2)"), value_sql(date(2024, 5, 1), "timestamp")
        ("cast('1.5' as decimal(10,2))", "cast(cast('2024-05-01' as date) as timestamp)")
        >>> value_sql(7.0, "bigint")
        "cast(cast('7.0' as decimal(38,18)) as bigint)"
    """
    if isinstance(value, datetime):
        moment = (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
        if kind == "timestamp_ntz":
            return f"cast({text_sql(moment.replace(tzinfo=None).isoformat(' '))} as timestamp_ntz)"
        return f"cast({instant_sql(moment)} as {kind})"
    if isinstance(value, date):
        return f"cast(cast({text_sql(value.isoformat())} as date) as {kind})"
    if isinstance(value, (float, Decimal)) and kind in _INTEGERS:
        # A text with a point isn't an integer's, whatever stands behind it.
        return f"cast(cast({text_sql(str(value))} as decimal(38,18)) as {kind})"
    return f"cast({text_sql(str(value))} as {kind})"
