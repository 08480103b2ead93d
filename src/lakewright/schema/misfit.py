"""Values that do not fit a type: their SQL, and how they are found again in what Spark reports.

A misfit is JSON between two invisible characters, so that no logic reads a sentence. Text is made of it where
it is shown.

Source: the rules of reading, "Two steps".
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from lakewright.schema.sql import text_sql

__all__ = ["Misfit", "Owner", "Reason", "misfit_sql", "raised_sql"]

_MARK = "\u2063"
"""Stands around the misfit in an error of Spark; it is invisible where Spark shows the text."""

_RAISED = re.compile(f"{_MARK}({{[^{_MARK}]*}}){_MARK}")

_LONGEST = 100
"""Characters of a value that a misfit keeps."""


class Owner(StrEnum):
    """What gives a column its type."""

    DECLARED = "declared"
    TABLE = "table"
    SLICE = "slice"


class Reason(StrEnum):
    """Why a value does not fit a type."""

    NO_CONVERSION = "no_conversion"
    NOT_WRITTEN_SO = "not_written_so"
    OUT_OF_RANGE = "out_of_range"
    INEXACT = "inexact"
    TOO_LONG = "too_long"
    NO_UNIT = "no_unit"
    NOT_MIDNIGHT = "not_midnight"
    NO_SUCH_TIME = "no_such_time"
    NOT_JSON = "not_json"
    NOT_OF_SHAPE = "not_of_shape"


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that does not fit the type of its column.

    Attributes:
        column: The column, or the path of a field inside it, joined by dots.
        type: The type, in Spark's SQL.
        value: The value as text, cut after 100 characters.
        reason: Why it does not fit.
        owner: What gives the column its type.
    """

    column: str
    type: str
    value: str
    reason: Reason
    owner: Owner = Owner.DECLARED

    @classmethod
    def parsed(cls, text: str) -> Misfit | None:
        """Return the misfit that a fault of a row is; None for other faults.

        Example:
            >>> known = '"column":"n","type":"int","reason":"inexact","owner":"table"'
            >>> Misfit.parsed(f'{{{known},"value":"1.5"}}').reason
            <Reason.INEXACT: 'inexact'>
        """
        try:
            found = json.loads(text) if text.startswith("{") else None
            return found and cls(
                column=found["column"],
                type=found["type"],
                value=found["value"],
                reason=Reason(found["reason"]),
                owner=Owner(found["owner"]),
            )
        except (ValueError, KeyError, TypeError):
            return None

    @classmethod
    def raised(cls, text: str) -> Misfit | None:
        """Return the misfit that failed a query, found in Spark's text; None if none did."""
        found = _RAISED.search(text)
        return None if found is None else cls.parsed(found[1])


def misfit_sql(value: str, reason: Reason, *, column: str, target: str, owner: Owner) -> str:
    """Return SQL of a misfit as JSON text.

    Args:
        value: SQL of the value as a text, which is not null.
        reason: Why it does not fit.
        column: The column, or the path of a field inside it.
        target: The type, in Spark's SQL.
        owner: What gives the column its type.
    """
    known = {"column": column, "type": target, "reason": reason.value, "owner": owner.value}
    start = json.dumps(known, ensure_ascii=False, separators=(",", ":"))[:-1] + ","
    shown = f"to_json(named_struct('value', left({value}, {_LONGEST})))"
    return f"concat({text_sql(start)}, substring({shown}, 2))"


def raised_sql(fault: str) -> str:
    """Return SQL that fails the query with a misfit."""
    mark = text_sql(_MARK)
    return f"raise_error(concat({mark}, {fault}, {mark}))"
