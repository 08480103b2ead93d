"""The first record of a CSV file, found in its first characters without Spark."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from lakewright.reader.form import Form

__all__ = ["FirstRecord", "first_record"]


class FirstRecord(NamedTuple):
    """The first record of a file.

    Attributes:
        values: Its values, without quotes around them; none if the file has no record.
        is_alone: Whether no other record follows, as far as the text goes.
        end: What ends its line; empty if the text does.
    """

    values: tuple[str, ...]
    is_alone: bool
    end: str = ""


def first_record(text: str, form: Form, *, is_whole: bool) -> FirstRecord | None:
    r"""Return the first record of a text; None if it ends beyond the text.

    Lines without a visible character, and comments, are no records.

    Args:
        text: The beginning of a file.
        form: How it is written.
        is_whole: Whether the text is the whole file.

    Example:
        >>> first_record('id,"a ""b"" c"\n1,2', Form("csv"), is_whole=False)
        FirstRecord(values=('id', 'a "b" c'), is_alone=False, end='\n')
    """
    signs = _signs(form.separator, form.quote, form.escape, form.line_end)
    place = 1 if text.startswith("\ufeff") else 0
    while (line := signs.line.match(text, place)) is not None and _is_nothing(line[0], form):
        place = line.end()
    if not text[place:].strip():
        return FirstRecord((), is_alone=True) if is_whole else None
    values: list[str] = []
    while True:
        field = signs.field.match(text, place)
        end = len(text) if field is None else field.end()
        if field is None or (not is_whole and (end == len(text) or signs.open.match(text, place))):
            return None
        quoted, plain = field["quoted"], field["plain"]
        values.append(plain if quoted is None else signs.escaped.sub(r"\1", quoted))
        place = end
        if field["end"] != form.separator:
            return FirstRecord(tuple(values), not text[place:].strip(), field["end"])


def _is_nothing(line: str, form: Form) -> bool:
    return not line.strip() or bool(form.comment and line.startswith(form.comment))


class _Signs(NamedTuple):
    line: re.Pattern[str]
    field: re.Pattern[str]
    open: re.Pattern[str]
    escaped: re.Pattern[str]


@lru_cache
def _signs(separator: str, quote: str, escape: str, line_end: str | None) -> _Signs:
    sign, end = re.escape(separator), r"\r\n|\n|\r" if line_end is None else re.escape(line_end)
    after = rf"{sign}|{end}|\Z"
    plain = rf"(?P<plain>(?:(?!{after}).)*+)"
    quoted, opened, escaped = r"(?P<quoted>(?!))", "(?!)", "(?!)"
    if quote:
        mark, before = re.escape(quote), re.escape(escape or quote)
        escaping = rf"{mark}{mark}" if before == mark else rf"{before}."
        plain_signs = rf"[^{mark}{before}]*+"
        inside = rf"{plain_signs}(?:{escaping}{plain_signs})*+"
        quoted = rf"{mark}(?P<quoted>{inside}){mark}[ \t]*(?={after})"
        opened = rf"{mark}{inside}\Z"
        escaped = rf"{before}([{mark}{before}])"
    return _Signs(
        re.compile(rf"(?:(?!{end}).)*+(?:{end})", re.DOTALL),
        re.compile(rf"(?:{quoted}|{plain})(?P<end>{after})", re.DOTALL),
        re.compile(opened, re.DOTALL),
        re.compile(escaped),
    )
