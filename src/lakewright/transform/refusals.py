"""Failures that a query raises itself, with what to do: their SQL, and how they are found in Spark's text."""

from __future__ import annotations

import re

from lakewright.schema.sql import text_sql

_SEPARATOR = "\u2064"
"""Stands around message and remedy; it is invisible where Spark shows the text."""

_PART = f"{_SEPARATOR}([^{_SEPARATOR}]*){_SEPARATOR}"
_RAISED = re.compile(f"{_PART} {_PART}")


def refusing_sql(message: str, remedy: str) -> str:
    """Return SQL that fails the query.

    Args:
        message: SQL of the text that says what is wrong.
        remedy: What to do about it.
    """
    parts = (
        text_sql(_SEPARATOR),
        message,
        text_sql(f"{_SEPARATOR} {_SEPARATOR}{remedy}{_SEPARATOR}"),
    )
    return f"raise_error(concat({', '.join(parts)}))"


def refusal_of(text: str) -> tuple[str, str] | None:
    """Return the message and the remedy that a failed query raised, found in Spark's text; None if none.

    Example:
        >>> refusal_of("[USER_RAISED_EXCEPTION] \u2064no\u2064 \u2064do\u2064 SQLSTATE: P0001")
        ('no', 'do')
    """
    found = _RAISED.search(text)
    return None if found is None else (found[1], found[2])
