"""Why something was guessed, left out or is asked: codes with their parameters, and a sentence for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lakewright.spec.words import counted, first_of


class Code(StrEnum):
    """What was found."""

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
    SAMPLE_FITS = "sample_fits"
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


_MOST_NAMED = 5

_REASONS: Mapping[Code, str] = {
    Code.HIDDEN: "hidden, as readers skip it",
    Code.UNFINISHED: "still being written, by its name",
    Code.DELTA_TABLE: "a Delta table, which is no delivery",
    Code.ARCHIVE: "an archive; unpack it first",
    Code.COMPRESSION: "compressed in a way that can't be looked into",
    Code.BINARY: "binary, neither text nor a known format",
    Code.DAMAGED: "damaged: {why}",
    Code.NOT_DATA: "no rows of a known format",
    Code.SPANS_LINES: "JSON whose records span lines; deliver one record a line",
    Code.UNREADABLE: "can't be read: {why}",
    Code.NO_CONTENT: "without content",
    Code.TOO_MANY: "beyond the first 200 entities",
    Code.FOLDER_A_DAY: "{slices}, a folder each, {dates}",
    Code.DATED: "{slices}, {dates}",
    Code.UNDATED: "{slices}, not dated by their names",
    Code.AS_WRITTEN: "as the beginning of {files} shows",
    Code.ALL_FIT: "all values in {files} fit",
    Code.SAMPLE_FITS: "all values in {files} of {all} fit; the others were not looked at",
    Code.FORM_OF_DATES: "all values are written so",
    Code.LEADING_ZERO: "text: {example} would lose its leading zeros",
    Code.MIXED: "text: most are numbers, but not {example}",
    Code.DECIMAL_COMMA: "text: {example} has a decimal comma",
    Code.DAY_OR_MONTH: "text: {example} may begin with the day or with the month",
    Code.LONG_NUMBER: "text: no number holds all digits of {example}",
    Code.NO_VALUES: "text: no file has a value",
    Code.NESTED: "nested: {type}",
    Code.UNIQUE: "unique and never null in the {rows} of {files}",
    Code.SEVERAL_VERSIONS: "a slice has several rows of one {column}, which {order} tells apart",
    Code.NO_KEY: "no column, and no few columns together, are unique and never null in each slice",
    Code.NOT_LOOKED_INTO: "no values were looked into",
    Code.SNAPSHOT: "each slice is the whole source: {share} of the keys come again in the next",
    Code.INCREMENT: "each slice has only what is new: {share} of the keys come again in the next",
    Code.OVERLAP: "a slice may be the whole source or not: {share} of the keys come again in the next",
    Code.ONE_SLICE: "only one slice, which does not show whether it is the whole source",
    Code.NOT_COMPARED: "the slices could not be compared",
    Code.WITH_HISTORY: "whole snapshots with a key and dates keep every version",
    Code.NO_DATES: "a row replaces the one with its key: without dates, history would have times of loading",
    Code.WITHOUT_HISTORY: "a row replaces the one with its key",
    Code.REPLACED: "without a key, each slice replaces the table",
    Code.LOST_ROWS: "without a key, each slice replaces the table, also rows of earlier slices",
}
"""Why something was guessed or left out, for comments and lists."""

_NAMES_TO_GIVE = "Name the columns: `key: [a, b]`."
_IF_WHOLE = "If so, add `deletes: snapshot`."

QUESTIONS: Mapping[Code, str] = {
    Code.DOUBLED_NAME: "can the source rename a column? The header has {column} twice, which fails slices.",
    Code.NAMELESS: "can the source name column {place}? The header does not, which fails slices.",
    Code.NO_TYPE: "what is {column}, a {type}? No type holds it: declare it as string, or `omit: true`.",
    Code.FAULTY_FILE: "can {file} be delivered again? It will fail its slice ({why}). Otherwise remove it.",
    Code.OTHER_DATES: "can slices be named by dates such as 2024-05-01? Slices are taken in the order "
    "of their names, and those such as {example} do not sort by time.",
    Code.LOST_ROWS: "what identifies a row? Slices differ, and `full` keeps only the rows of the last one. "
    f"{_NAMES_TO_GIVE}",
    Code.NO_KEY: f"what identifies a row? Without a key, each slice replaces the table. {_NAMES_TO_GIVE}",
    Code.NOT_LOOKED_INTO: f"what identifies a row? No values were looked into ({{kind}}). {_NAMES_TO_GIVE}",
    Code.UNSURE_KEY: "is {columns} the key? It is unique in {rows}, perhaps by chance.",
    Code.OVERLAP: "is each slice the whole source? {share} of a slice's keys come again in the next. "
    f"{_IF_WHOLE}",
    Code.NOT_COMPARED: f"is each slice the whole source? Their rows could not be compared. {_IF_WHOLE}",
    Code.RAGGED: "can the source correct {rows}? They have more or fewer fields than the header, which fails "
    "slices.",
    Code.DAY_OR_MONTH: "do dates such as {example} in {columns} begin with the day? Then declare "
    "`{{type: date, format: dd/MM/yyyy}}`; until then they are text.",
    Code.DECIMAL_COMMA: "is {example} in {columns} a number with a comma? Until then it is text; an "
    "`expression` can make one of it.",
    Code.NO_HEADER: "what are the columns called? The files have no header.",
    Code.ENCODING: "is the encoding {encoding}? The bytes are not UTF-8, and others of one byte would do.",
    Code.OTHER_COLUMNS: "are {columns} optional? Not all files have them.",
    Code.ONE_SLICE: f"is each slice the whole source? There is only one. {_IF_WHOLE}",
    Code.NO_DATES: "should earlier versions be kept? The names of slices have no dates: `historic` would "
    "date versions by the time of loading.",
    Code.MIXED: "is {example} in {columns} right? Most values are numbers; all are text until then.",
}
"""What only a person can decide, the most important first."""


def reason_text(reason: Reason) -> str:
    """Return why something was guessed or left out."""
    return _REASONS[reason.code].format_map(_shown(reason.given))


def question_text(reason: Reason) -> str:
    """Return a question, with what to declare."""
    return QUESTIONS[reason.code].format_map(_shown(reason.given))


def _shown(given: Mapping[str, Any]) -> dict[str, str]:
    return {name: _value(name, value) for name, value in given.items()}


def _value(name: str, value: Any) -> str:
    if isinstance(value, list):
        return first_of([str(each) for each in value], _MOST_NAMED)
    if name in ("files", "rows", "slices"):
        return counted(value, name[:-1])
    if name == "share":
        return f"{int(value * 100)} %"
    return str(value)
