"""Values as literals of Spark SQL, typed and never spliced as text.

Source: rules of entities, watermarks: "the value is bound typed".
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

from lakewright.transform.sql import text_sql
from lakewright.transform.steps import instant_sql

__all__ = ["value_sql"]


def value_sql(value: object, kind: str) -> str:
    """Return a Python value as SQL of the given type; a time without zone is UTC.

    Args:
        value: A number, text, date or time.
        kind: The type in Spark's SQL.

    Example:
        >>> value_sql(Decimal("1.50"), "decimal(10,2)"), value_sql("a'b", "string")
        ("cast('1.50' as decimal(10,2))", "cast('a\\\\'b' as string)")
    """
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        if kind == "timestamp_ntz":
            return f"cast({text_sql(moment.astimezone(UTC).replace(tzinfo=None).isoformat(' '))} as timestamp_ntz)"
        return f"cast({instant_sql(moment)} as {kind})"
    if isinstance(value, date):
        return f"cast(cast({text_sql(value.isoformat())} as date) as {kind})"
    return f"cast({text_sql(str(value))} as {kind})"
