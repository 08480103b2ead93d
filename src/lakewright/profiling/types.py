"""The types that the values of a text column show: those from which each text can be read back.

What has leading zeros, and what is of several kinds, stays text. So does what may be two things, such as
03/04/2024.

Source: the rules of reading, "What fits"; of the short form, "From files to a project".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal as Exact

from lakewright.profiling.reason import Code, Reason
from lakewright.schema.types import BOOLEAN, TEXT, Decimal, Scalar, Type

DATE, TIMESTAMP, WHOLE, DOUBLE = map(Scalar, ("date", "timestamp", "bigint", "double"))

_BOOLEANS = ({"true", "false"}, {"True", "False"}, {"TRUE", "FALSE"})
_WHOLE = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?", re.ASCII)
_ZEROS = re.compile(r"-?0[0-9]+(?:\.[0-9]*)?", re.ASCII)
_COMMA = re.compile(r"-?(?:[0-9]{1,3}(?:\.[0-9]{3})*|[0-9]+),[0-9]+", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]{1,6})?)?"
    r"(?:Z|[+-](?:0[0-9]|1[0-4])(?::?[0-5][0-9])?)?",
    re.ASCII,
)
_SPELLED = re.compile(r"[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}(?: .*)?", re.ASCII)

_FORMATS = (
    ("dd.MM.yyyy", "%d.%m.%Y"),
    ("dd/MM/yyyy", "%d/%m/%Y"),
    ("MM/dd/yyyy", "%m/%d/%Y"),
    ("dd-MM-yyyy", "%d-%m-%Y"),
    ("MM-dd-yyyy", "%m-%d-%Y"),
    ("yyyy/MM/dd", "%Y/%m/%d"),
)
_CLOCKS = (("", ""), (" HH:mm", " %H:%M"), (" HH:mm:ss", " %H:%M:%S"))

_MOST_WHOLE, _MONEY = 18, 18
"""Digits that bigint always holds, and those of the decimals that are guessed."""


@dataclass(frozen=True, slots=True)
class TypeGuess:
    """The type of a column.

    Attributes:
        type: The type; text if it is not known better.
        reason: Why.
        format: The form of dates or times, in Spark's letters; None for ISO 8601.
    """

    type: Type
    reason: Reason
    format: str | None = None


def type_of_texts(values: Collection[str]) -> TypeGuess:
    """Return the narrowest type from which all texts can be read back, of those that are not null.

    Example:
        >>> type_of_texts({"1", "20"}).type.ddl, type_of_texts({"01", "20"}).type.ddl
        ('bigint', 'string')
        >>> type_of_texts({"1.50", "20.00"}).type.ddl, type_of_texts({"1.5", "20"}).type.ddl
        ('decimal(18,2)', 'double')
    """
    if not values:
        return TypeGuess(TEXT, Reason(Code.NO_VALUES))
    for rule in (_boolean, _number, _date_or_time, _formatted):
        if (found := rule(values)) is not None:
            return found
    return TypeGuess(TEXT, _why_text(values))


def _all(values: Collection[str], pattern: re.Pattern[str]) -> bool:
    return all(map(pattern.fullmatch, values))


def _fit(kind: Type, values: Collection[str]) -> TypeGuess:
    return TypeGuess(kind, Reason.of(Code.ALL_FIT, values=len(values)))


def _boolean(values: Collection[str]) -> TypeGuess | None:
    return _fit(BOOLEAN, values) if any(pair.issuperset(values) for pair in _BOOLEANS) else None


def _number(values: Collection[str]) -> TypeGuess | None:
    if not _all(values, _NUMBER):
        return None
    if _all(values, _WHOLE):
        longest = max(values, key=len)
        return _long(longest) if len(longest.lstrip("-")) > _MOST_WHOLE else _fit(WHOLE, values)
    # What follows the point in a number with an exponent says nothing of its places.
    places = {0 if "e" in value.lower() else len(value.partition(".")[2]) for value in values}
    if len(places) == 1 and min(places) >= 2 and max(map(len, values)) <= _MONEY:
        # Sums of money and the like; a decimal refuses what later files write with more places.
        return _fit(Decimal(_MONEY, places.pop()), values)
    inexact = next((value for value in values if Exact(repr(float(value))) != Exact(value)), None)
    return _fit(DOUBLE, values) if inexact is None else _long(inexact)


def _long(example: str) -> TypeGuess:
    return TypeGuess(TEXT, Reason.of(Code.LONG_NUMBER, example=example))


def _date_or_time(values: Collection[str]) -> TypeGuess | None:
    if not all(_DAY.fullmatch(value) or _TIME.fullmatch(value) for value in values):
        return None
    if not all(_is_moment(value) for value in values):
        return None
    return _fit(DATE if _all(values, _DAY) else TIMESTAMP, values)


def _is_moment(text: str) -> bool:
    try:
        return 1 < datetime.fromisoformat(text.replace("Z", "+00:00")[:19]).year < 9999
    except ValueError:
        return False


def _formatted(values: Collection[str]) -> TypeGuess | None:
    example = next(iter(values))
    if not _SPELLED.fullmatch(example):
        return None
    fitting = [
        f"{form}{clock}"
        for form, pattern in _FORMATS
        for clock, of_clock in _CLOCKS
        if all(map(_reads(f"{pattern}{of_clock}"), values))
    ]
    if len(fitting) > 1:
        return TypeGuess(TEXT, Reason.of(Code.DAY_OR_MONTH, example=example, formats=fitting))
    if not fitting:
        return None
    reason = Reason.of(Code.FORM_OF_DATES, values=len(values), format=fitting[0])
    return TypeGuess(TIMESTAMP if "HH" in fitting[0] else DATE, reason, fitting[0])


def _reads(pattern: str) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            found = datetime.strptime(text, pattern)
        except ValueError:
            return False
        # Python also takes digits that are left out.
        return found.year > 1 and found.strftime(pattern).rjust(len(text), "0") == text

    return fits


def _why_text(values: Collection[str]) -> Reason:
    zeros = sorted(filter(_ZEROS.fullmatch, values), key=_by_length)
    numbers: Sequence[str] = sorted(filter(_NUMBER.fullmatch, values), key=_by_length)
    if zeros and len(zeros) + len(numbers) == len(values):
        return Reason.of(Code.LEADING_ZERO, example=zeros[0])
    commas = sorted(filter(_COMMA.fullmatch, values), key=_by_length)
    if commas and len(commas) + sum(map(bool, map(_WHOLE.fullmatch, values))) == len(values):
        return Reason.of(Code.DECIMAL_COMMA, example=commas[0])
    others = sorted((each for each in values if not _NUMBER.fullmatch(each)), key=_by_length)
    if numbers and len(numbers) * 2 > len(values):
        return Reason.of(Code.MIXED, example=others[0], number=numbers[0], others=len(others))
    return Reason.of(Code.ALL_FIT, values=len(values))


def _by_length(text: str) -> tuple[int, str]:
    return len(text), text
