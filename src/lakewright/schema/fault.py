"""What is wrong with a row: a value that does not fit its type, a key without a value, a broken record.

A fault is JSON in SQL, so that no logic reads a sentence; a query that fails because of one raises it between
two invisible characters. Text is made of it where it is shown.

Source: the rules of reading, "Two steps".
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from lakewright.schema.sql import text_sql

_MARK = "\u2063"
"""Stands around the fault in an error of Spark; it is invisible where Spark shows the text."""

_RAISED = re.compile(f"{_MARK}({{[^{_MARK}]*}}){_MARK}")

_LONGEST = 100
"""Characters of a value that a fault keeps."""

_MOST = 10
"""Faults of a row that are kept."""

_NEXT = "\n"
"""Stands between the faults of a row; JSON has none."""


class Owner(StrEnum):
    """What gives a column its type."""

    DECLARED = "declared"
    TABLE = "table"
    SLICE = "slice"


class Reason(StrEnum):
    """What is wrong; all but the last two are about a value and its type."""

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
    NOT_AS_FOLDER = "not_as_folder"
    NULL_KEY = "null_key"
    UNPARSED = "unparsed"


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a row.

    Attributes:
        reason: What it is.
        column: The column, or the path of a field inside it, joined by dots; empty for the whole row.
        type: The type that a value does not fit, in Spark's SQL.
        value: The value as text, cut after 100 characters.
        owner: What gives the column its type.
        place: Where the row is from, such as a relation and a file; empty if whoever shows the fault knows.
    """

    reason: Reason
    column: str = ""
    type: str = ""
    value: str = ""
    owner: Owner = Owner.DECLARED
    place: str = ""

    @property
    def is_misfit(self) -> bool:
        """Whether a value does not fit its type."""
        return self.reason not in (Reason.NULL_KEY, Reason.UNPARSED)

    @classmethod
    def parsed(cls, text: str) -> Fault:
        """Return the fault that `fault_sql` wrote.

        Example:
            >>> Fault.parsed('{"reason":"null_key","column":"id"}').reason
            <Reason.NULL_KEY: 'null_key'>
        """
        found = json.loads(text)
        owner = Owner(found.pop("owner", Owner.DECLARED))
        return cls(Reason(found.pop("reason")), owner=owner, **found)

    @classmethod
    def raised(cls, text: str) -> Fault | None:
        """Return the fault that failed a query, found in Spark's text; None if none did."""
        found = _RAISED.search(text)
        return None if found is None else cls.parsed(found[1].partition(_NEXT)[0])

    @classmethod
    def parsed_all(cls, text: str) -> tuple[Fault, ...]:
        """Return the faults that `all_faults_sql` wrote: the first one of each column or path."""
        found: dict[str, Fault] = {}
        for each in map(cls.parsed, text.split(_NEXT)):
            found.setdefault(each.column, each)
        return tuple(found.values())

    def as_json(self) -> dict[str, str]:
        """Return its fields that are known."""
        found = {"reason": self.reason.value, "column": self.column, "type": self.type, "value": self.value}
        found["place"] = self.place
        owner = {"owner": self.owner.value} if self.is_misfit else {}
        return {name: text for name, text in found.items() if text} | owner


def fault_sql(reason: Reason, column: str = "") -> str:
    """Return SQL of a fault that is about no value."""
    return text_sql(_json(Fault(reason, column)))


def misfit_sql(value: str, reason: Reason, *, column: str, target: str, owner: Owner) -> str:
    """Return SQL of a value that does not fit.

    Args:
        value: SQL of the value as a text, which is not null.
        reason: Why it does not fit.
        column: The column, or the path of a field inside it.
        target: The type, in Spark's SQL.
        owner: What gives the column its type.
    """
    start = _json(Fault(reason, column, target, owner=owner))[:-1] + ","
    shown = f"to_json(named_struct('value', left(replace({value}, {text_sql(_MARK)}), {_LONGEST})))"
    return f"concat({text_sql(start)}, substring({shown}, 2))"


def all_faults_sql(faults: Sequence[str]) -> str:
    """Return SQL of the first ten faults that a row has, as one text; null if it has none.

    Args:
        faults: SQL of each fault, which is null where the row does not have it.
    """
    if len(faults) < 2:
        return next(iter(faults), "cast(null as string)")
    mark = text_sql(_NEXT)
    return f"nullif(substring_index(concat_ws({mark}, {', '.join(faults)}), {mark}, {_MOST}), '')"


def placed_sql(fault: str, place: str) -> str:
    """Return SQL of a fault with where its row is from.

    Args:
        fault: SQL of the fault, which may be null.
        place: SQL of the place as a text.
    """
    return f"concat(rtrim('}}', to_json(named_struct('place', {place}))), ',', substring({fault}, 2))"


def raised_sql(fault: str) -> str:
    """Return SQL that fails the query with a fault."""
    mark = text_sql(_MARK)
    return f"raise_error(concat({mark}, {fault}, {mark}))"


def _json(fault: Fault) -> str:
    return json.dumps(fault.as_json(), separators=(",", ":"))
