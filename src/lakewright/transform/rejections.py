"""What Spark says against an expression, without what only Spark's own documentation explains."""

from __future__ import annotations

import re

from lakewright.spec.suggestions import nearest

__all__ = ["rejection"]

_CONDITION = re.compile(r"^\[[A-Z][A-Z0-9_.]*\]\s*")
_STATE = re.compile(r"\s*\bSQLSTATE: \w+.*$")
_NO_FUNCTION = re.compile(r"^\[UNRESOLVED_ROUTINE\] Cannot resolve routine `([^`]+)`")


def rejection(text: str) -> str:
    """Return the first line of what Spark says, without its condition and SQLSTATE.

    Example:
        >>> rejection("[UNRESOLVED_ROUTINE] Cannot resolve routine `agregate` on search path [`system`].")
        "there is no function 'agregate'; did you mean 'aggregate'?"
        >>> rejection("[PARSE_SYNTAX_ERROR] Syntax error at or near ')'. SQLSTATE: 42601 (line 1, pos 4)")
        "Syntax error at or near ')'"
    """
    first = text.strip().partition("\n")[0]
    if (unknown := _NO_FUNCTION.search(first)) is not None:
        return f"there is no function {unknown[1]!r}{_meant(unknown[1])}"
    return _STATE.sub("", _CONDITION.sub("", first)).removesuffix(".")


def _meant(name: str) -> str:
    from pyspark.sql import functions

    found = nearest(name, (each for each in dir(functions) if each[0] != "_" and each.islower()), cutoff=0.75)
    return "" if found is None else f"; did you mean {found!r}?"
