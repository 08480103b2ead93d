"""Failures that a query raises itself, with what to do: their SQL, and how Spark's text tells them."""

from __future__ import annotations

import re

from lakewright.transform.sql import text_sql

__all__ = ["refusal_of", "refusing_sql"]

_MARK, _SEPARATOR = "lakewright-refusal", "\u241f"
_RAISED = re.compile(rf"{_MARK}{_SEPARATOR}(.*?){_SEPARATOR}(.*?){_SEPARATOR}", re.DOTALL)


def refusing_sql(message: str, remedy: str) -> str:
    """Return SQL that fails the query.

    Args:
        message: SQL of the text that says what is wrong.
        remedy: What to do about it.
    """
    parts = (
        text_sql(f"{_MARK}{_SEPARATOR}"),
        message,
        text_sql(f"{_SEPARATOR}{remedy}{_SEPARATOR}"),
    )
    return f"raise_error(concat({', '.join(parts)}))"


def refusal_of(text: str) -> tuple[str, str] | None:
    """Return the message and the remedy that a failed query raised, found in Spark's text; None if none.

    Example:
        >>> refusal_of("[USER_RAISED_EXCEPTION] lakewright-refusal\u241fno\u241fdo\u241f SQLSTATE: P0001")
        ('no', 'do')
    """
    found = _RAISED.search(text)
    return None if found is None else (found[1], found[2])
