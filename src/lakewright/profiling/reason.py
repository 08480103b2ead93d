"""Why something was guessed, left out or is asked: codes with their parameters, and a sentence for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakewright.spec import reason
from lakewright.spec.reason import ReasonCode
from lakewright.spec.words import filled


class Code(ReasonCode):
    """What was found. What is only asked has no template but a question."""

    # Files that are left out
    HIDDEN = "hidden", "hidden, as readers skip it"
    UNFINISHED = "unfinished", "still being written, by its name"
    DELTA_TABLE = "delta_table", "a Delta table, which is no delivery"
    ARCHIVE = "archive", "an archive; unpack it first"
    COMPRESSION = "compression", "compressed in a way that can't be looked into"
    BINARY = "binary", "binary, neither text nor a known format"
    DAMAGED = "damaged", "damaged: {why}"
    NOT_DATA = "not_data", "no rows of a known format"
    SPANS_LINES = "spans_lines", "JSON whose records span lines; deliver one record a line"
    UNREADABLE = "unreadable", "can't be read: {why}"
    NO_CONTENT = "no_content", "without content"
    TOO_MANY = "too_many", "beyond the first 200 entities"

    # Slices
    DATED = "dated", "{slices:slice}, {dates}"
    UNDATED = "undated", "{slices:slice}, not dated by their names"
    OTHER_DATES = "other_dates", ""
    FOLDER_A_DAY = "folder_a_day", "{slices:slice}, a folder each, {dates}"

    # Formats
    KIND = "kind", ""
    AS_WRITTEN = "as_written", "as the beginning of {files:file} shows"
    ENCODING = "encoding", ""
    NO_HEADER = "no_header", ""

    # Types
    ALL_FIT = "all_fit", "all values in {files:file} fit"
    SAMPLE_FITS = "sample_fits", "all values in {files:file} of {all} fit; the others were not looked at"
    FORM_OF_DATES = "form_of_dates", "all values are written so"
    LEADING_ZERO = "leading_zero", "text: {example} would lose its leading zeros"
    MIXED = "mixed", "text: most are numbers, but not {example}"
    DECIMAL_COMMA = "decimal_comma", "text: {example} has a decimal comma"
    DAY_OR_MONTH = "day_or_month", "text: {example} may begin with the day or with the month"
    LONG_NUMBER = "long_number", "text: no number holds all digits of {example}"
    NO_VALUES = "no_values", "text: no file has a value"
    NESTED = "nested", "nested: {type}"
    NO_TYPE = "no_type", ""

    # Keys and strategies
    UNIQUE = "unique", "unique and never null in the {rows:row} of {files:file}"
    UNSURE_KEY = "unsure_key", ""
    SEVERAL_VERSIONS = (
        "several_versions",
        "a slice has several rows of one {column}, which {order} tells apart",
    )
    NO_KEY = "no_key", "no column, and no few columns together, are unique and never null in each slice"
    SNAPSHOT = "snapshot", "each slice is the whole source: {share:%} of the keys come again in the next"
    INCREMENT = "increment", "each slice has only what is new: {share:%} of the keys come again in the next"
    OVERLAP = (
        "overlap",
        "a slice may be the whole source or not: {share:%} of the keys come again in the next",
    )
    ONE_SLICE = "one_slice", "only one slice, which does not show whether it is the whole source"
    NOT_COMPARED = "not_compared", "the slices could not be compared"
    NO_DATES = (
        "no_dates",
        "a row replaces the one with its key: without dates, history would have times of loading",
    )
    WITH_HISTORY = "with_history", "whole snapshots with a key and dates keep every version"
    WITHOUT_HISTORY = "without_history", "a row replaces the one with its key"
    REPLACED = "replaced", "without a key, each slice replaces the table"
    LOST_ROWS = "lost_rows", "without a key, each slice replaces the table, also rows of earlier slices"

    # Faults of files that are not left out
    FAULTY_FILE = "faulty_file", ""
    DOUBLED_NAME = "doubled_name", ""
    NAMELESS = "nameless", ""
    RAGGED = "ragged", ""
    OTHER_COLUMNS = "other_columns", ""
    NOT_LOOKED_INTO = "not_looked_into", "no values were looked into"


@dataclass(frozen=True, slots=True)
class Reason(reason.Reason):
    """Why something was guessed, left out or is asked."""

    code: Code

    @classmethod
    def of(cls, code: Code, **params: Any) -> Reason:
        """Return the reason with these parameters."""
        return cls(code, params)

    def as_json(self) -> dict[str, Any]:
        """Return the code beside its parameters."""
        return {"code": str(self.code), **self.params}


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
    Code.UNSURE_KEY: "is {columns} the key? It is unique in {rows:row}, perhaps by chance.",
    Code.OVERLAP: "is each slice the whole source? {share:%} of a slice's keys come again in the next. "
    f"{_IF_WHOLE}",
    Code.NOT_COMPARED: f"is each slice the whole source? Their rows could not be compared. {_IF_WHOLE}",
    Code.RAGGED: "can the source correct {rows:row}? They have more or fewer fields than the header, which "
    "fails slices.",
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


def question_text(reason: Reason) -> str:
    """Return a question, with what to declare."""
    return filled(QUESTIONS[reason.code], reason.params)
