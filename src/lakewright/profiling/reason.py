"""Why something was guessed, left out or is asked: codes with their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Code(StrEnum):
    """What was found. `words` has a sentence for each."""

    # Files that are left out
    HIDDEN = "hidden"
    UNFINISHED = "unfinished"
    DELTA_TABLE = "delta_table"
    ARCHIVE = "archive"
    COMPRESSION = "compression"
    BINARY = "binary"
    DAMAGED = "damaged"
    NOT_DATA = "not_data"
    SPANS_LINES = "spans_lines"
    UNREADABLE = "unreadable"
    NO_CONTENT = "no_content"
    TOO_MANY = "too_many"

    # Slices
    DATED = "dated"
    UNDATED = "undated"
    OTHER_DATES = "other_dates"
    FOLDER_A_DAY = "folder_a_day"

    # Formats
    KIND = "kind"
    AS_WRITTEN = "as_written"
    ENCODING = "encoding"
    NO_HEADER = "no_header"

    # Types
    ALL_FIT = "all_fit"
    FORM_OF_DATES = "form_of_dates"
    LEADING_ZERO = "leading_zero"
    MIXED = "mixed"
    DECIMAL_COMMA = "decimal_comma"
    DAY_OR_MONTH = "day_or_month"
    LONG_NUMBER = "long_number"
    NO_VALUES = "no_values"
    NESTED = "nested"
    NO_TYPE = "no_type"

    # Keys and strategies
    UNIQUE = "unique"
    UNSURE_KEY = "unsure_key"
    SEVERAL_VERSIONS = "several_versions"
    NO_KEY = "no_key"
    SNAPSHOT = "snapshot"
    INCREMENT = "increment"
    OVERLAP = "overlap"
    ONE_SLICE = "one_slice"
    NOT_COMPARED = "not_compared"
    NO_DATES = "no_dates"
    WITH_HISTORY = "with_history"
    WITHOUT_HISTORY = "without_history"
    REPLACED = "replaced"
    LOST_ROWS = "lost_rows"

    # Faults of files that are not left out
    FAULTY_FILE = "faulty_file"
    DOUBLED_NAME = "doubled_name"
    NAMELESS = "nameless"
    RAGGED = "ragged"
    OTHER_COLUMNS = "other_columns"
    NOT_LOOKED_INTO = "not_looked_into"


@dataclass(frozen=True, slots=True)
class Reason:
    """A code with its parameters, which can be written as JSON."""

    code: Code
    given: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, code: Code, **given: Any) -> Reason:
        """Return the reason with these parameters."""
        return cls(code, given)

    def as_json(self) -> dict[str, Any]:
        """Return the code beside its parameters."""
        return {"code": str(self.code), **self.given}
