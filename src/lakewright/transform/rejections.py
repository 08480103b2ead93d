"""What Spark says against an expression, without what only Spark's own documentation explains."""

from __future__ import annotations

import re

from lakewright.spec.suggestions import nearest

__all__ = ["rejection"]

_CONDITION = re.compile(r"^\[[A-Z][A-Z0-9_.]*\]\s*")
_STATE = re.compile(r"\.?\s*\bSQLSTATE: \w+;?")
_NO_FUNCTION = re.compile(r"^\[UNRESOLVED_ROUTINE\] Cannot resolve routine ((?:`[^`]+`\.?)+)")
_OF_PYTHON = re.compile(
    r"(asc|desc)(_nulls_\w+)?|(count|sum)_distinct|broadcast|col|column|expr|lit|(pandas_)?udf|udtf"
)
"""Names of PySpark's functions that SQL does not have."""


def rejection(text: str) -> str:
    """Return the first line of what Spark says, without its condition and SQLSTATE.

    Example:
        >>> rejection("[UNRESOLVED_ROUTINE] Cannot resolve routine `agregate` on search path [`system`].")
        "there is no function 'agregate'; did you mean 'aggregate'?"
        >>> rejection("[PARSE_SYNTAX_ERROR] Syntax error at or near ')'. SQLSTATE: 42601 (line 1, pos 4)")
        "Syntax error at or near ')' (line 1, pos 4)"
    """
    first = text.strip().partition("\n")[0]
    if (unknown := _NO_FUNCTION.search(first)) is not None:
        name = unknown[1].rstrip(".").replace("`", "")
        return f"there is no function {name!r}{_meant(name)}"
    return _STATE.sub("", _CONDITION.sub("", first)).removesuffix(".")


def _meant(name: str) -> str:
    from pyspark.sql import functions

    known = (
        each
        for each, value in vars(functions).items()
        if _OF_PYTHON.fullmatch(each) is None and each.islower() and _is_of_spark(value)
    )
    found = nearest(name, known, cutoff=0.75)
    return "" if found is None else f"; did you mean {found!r}?"


def _is_of_spark(value: object) -> bool:
    return callable(value) and str(getattr(value, "__module__", "")).startswith("pyspark.sql.functions")
