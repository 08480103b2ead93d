"""Rows that a project declares itself: their values as texts, and those that do not fit their types."""

from __future__ import annotations

import json
import re
from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal as Number
from typing import Any, TypeAlias

from lakewright.errors import Fault, SpecError
from lakewright.schema.types import Array, Chars, Decimal, MapOf, Scalar, Struct, Type
from lakewright.spec.models.fields import Field
from lakewright.spec.suggestions import meant, suggestion
from lakewright.spec.words import counted

Record: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""A row: its values in the order of the columns, or by their names."""

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_PLAIN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)")
_FLOAT = re.compile(rf"(?:{_NUMBER.pattern})[dDfF]?|[+-]?inf(?:inity)?|nan", re.IGNORECASE)
_FORMS = {
    "boolean": re.compile(r"t|true|y|yes|1|f|false|n|no|0", re.IGNORECASE),
    "double": _FLOAT,
    "float": _FLOAT,
}
_TIMES = frozenset(("date", "timestamp", "timestamp_ntz"))
_DAY = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](.*))?)?)?", re.DOTALL)


def texts_of(fields: Sequence[Field], records: Sequence[Record]) -> list[tuple[str | None, ...]]:
    """Return the values of records as texts, one for each column; a nested value is JSON.

    Columns that a map leaves out are null.

    Raises:
        SpecError: A record has too many values, a name that is no column, or a value that does not fit its
            type.
    """
    rows = []
    for index, record in enumerate(records):
        values: list[str | None] = [None] * len(fields)
        try:
            for position, value, _ in _cells(fields, record):
                values[position] = _cell(fields[position], value)
        except SpecError as error:
            raise SpecError([_numbered(error, index)]) from error
        rows.append(tuple(values))
    return rows


def _numbered(error: SpecError, index: int) -> Fault:
    (fault,) = error.faults
    return fault.about(f"record {index + 1}")


def record_faults(
    fields: Sequence[Field], records: Sequence[Record]
) -> Iterator[tuple[tuple[str | int, ...], Fault]]:
    """Yield what `texts_of` would refuse, each fault with the path of the record, or of its value."""
    for index, record in enumerate(records):
        try:
            cells = list(_cells(fields, record))
        except SpecError as error:
            yield (index,), _numbered(error, index)
            continue
        for position, value, key in cells:
            try:
                _cell(fields[position], value)
            except SpecError as error:
                yield (index, key), _numbered(error, index)


def without_others(
    fields: Sequence[Field], records: Sequence[Record]
) -> tuple[list[Record], tuple[str, ...]]:
    """Return the records without what has no column, as Flowman's mocks drop it, and what that leaves out.

    Raises:
        SpecError: A name that is no column is similar to one, so that it is probably a slip of it.
    """
    columns = [field.name for field in fields]
    lower = {name.lower() for name in columns}
    kept: list[Record] = []
    dropped: dict[str, None] = {}
    for index, record in enumerate(records):
        if not isinstance(record, Mapping):
            kept.append(record[: len(columns)])
            if len(record) > len(columns):
                dropped[f"values after the first {len(columns)}, its columns, are left out"] = None
            continue
        for name in (name for name in record if name.lower() not in lower):
            if remedy := meant(name, columns):
                raise SpecError.of(f"record {index + 1}: there is no column {name!r}", remedy=remedy)
            dropped[f"there is no column {name!r}, so its values are left out"] = None
        kept.append({name: value for name, value in record.items() if name.lower() in lower})
    return kept, tuple(dropped)


def fits(text: str, kind: Type) -> bool:
    """Return whether a text is a value of a type that is not nested, so that converting it loses nothing.

    Texts of times are left to Spark, apart from their dates.

    Example:
        >>> [fits(text, Scalar("int")) for text in ("1.0", "1.5", "3000000000", "one")]
        [True, False, False, False]
        >>> [fits(text, Scalar("date")) for text in ("2024-02-29 00:00", "2024-02-29 12:30", "2024-02-30")]
        [True, False, False]
    """
    if isinstance(kind, Chars):
        return len(text.rstrip(" ")) <= kind.length
    text, name = text.strip(), kind.ddl
    if isinstance(kind, Decimal):
        return _NUMBER.fullmatch(text) is not None and _fits_decimal(Number(text), kind)
    if name in _BITS:
        return _PLAIN.fullmatch(text) is not None and _fits_whole(Number(text), _BITS[name])
    if name in _TIMES:
        return _fits_time(text, is_date=name == "date")
    return name not in _FORMS or _FORMS[name].fullmatch(text) is not None


def _fits_time(text: str, *, is_date: bool) -> bool:
    found = _DAY.fullmatch(text)
    if found is None or not _is_day(found[1], found[2], found[3]):
        return False
    return not is_date or re.search("[1-9]", found[4] or "") is None


def _fits_whole(number: Number, bits: int) -> bool:
    return number == number.to_integral_value() and -(2 ** (bits - 1)) <= number < 2 ** (bits - 1)


def _fits_decimal(number: Number, kind: Decimal) -> bool:
    if not number:
        return True
    # The context of Python's decimals would round at 28 digits.
    _, digits, exponent = number.as_tuple()
    written = "".join(map(str, digits))
    kept = written.rstrip("0")
    last = int(exponent) + len(written) - len(kept)
    first = last + len(kept.lstrip("0"))
    return last >= -kind.scale and first <= kind.precision - kind.scale


def _is_day(year: str, month: str | None, day: str | None) -> bool:
    month_number, day_number = int(month or 1), int(day or 1)
    if not 1 <= month_number <= 12:
        return False
    length = monthrange(int(year), month_number)[1] if 1 <= int(year) <= 9999 else 31
    return 1 <= day_number <= length


def _cells(fields: Sequence[Field], record: Record) -> Iterator[tuple[int, Any, str | int]]:
    """Yield the position of a column, its value, and the key or position that the record has it at."""
    names = {field.name.lower(): position for position, field in enumerate(fields)}
    if isinstance(record, Mapping):
        for name, value in record.items():
            if name.lower() not in names:
                raise SpecError.of(
                    f"there is no column {name!r} for its value",
                    remedy=suggestion(name, [field.name for field in fields]),
                )
            yield names[name.lower()], value, name
        return
    cells = record if isinstance(record, (list, tuple)) else [record]
    if len(cells) > len(fields):
        raise SpecError.of(
            f"{counted(len(cells), 'value')} for {counted(len(fields), 'column')}",
            remedy="Remove what is too much, or name the columns of the values: {column: value}.",
        )
    for position, value in enumerate(cells):
        yield position, value, position


def _cell(field: Field, value: Any) -> str | None:
    """Return the text of a value.

    Raises:
        SpecError: It is not one of the column's type.
    """
    if value is None or isinstance(field.type, Scalar | Decimal | Chars):
        return _checked(field.name, field.type, value)
    try:
        given = json.loads(value, parse_float=str, parse_int=str) if isinstance(value, str) else value
        return json.dumps(_nested(field.name, field.type, given))
    except ValueError as error:
        raise SpecError.of(
            f"column {field.name}: {_text(value)} is not of type {field.type.ddl}",
            remedy="Write a list as [a, b], and a struct as {field: value} or as the list of its values.",
        ) from error


def _checked(name: str, kind: Type, value: Any) -> str | None:
    text = _text(value)
    if text is not None and not fits(text, kind):
        raise SpecError.of(
            f"column {name}: {text} is not of type {kind.ddl}", remedy=_remedy(text.strip(), kind)
        )
    return text


def _remedy(text: str, kind: Type) -> str:
    if isinstance(kind, Chars):
        return f"Shorten it, or declare a longer {kind.ddl.partition('(')[0]}."
    if kind.ddl == "date" and (day := _DAY.fullmatch(text)) and day[4]:
        return "Leave out the time, or declare the column as timestamp."
    if _NUMBER.fullmatch(text) and (isinstance(kind, Decimal) or kind.ddl in _BITS):
        return "Correct the value, or declare a type that holds all of its digits."
    return "Correct the value, or the type of the column."


def _nested(name: str, kind: Type, value: Any) -> Any:
    """Return a value with texts inside; those of a struct by name.

    Raises:
        ValueError: It has another shape than the type.
        SpecError: A value inside is not one of its type.
    """
    if value is None or isinstance(kind, Scalar | Decimal | Chars):
        return _checked(name, kind, value)
    if isinstance(kind, Struct):
        names = [field.name for field in kind.fields]
        if isinstance(value, list | tuple) and len(value) <= len(names):
            value = dict(zip(names, value, strict=False))
        types = {field.name.lower(): (field.name, field.type) for field in kind.fields}
        if isinstance(value, Mapping) and all(str(inner).lower() in types for inner in value):
            found = ((*types[str(inner).lower()], each) for inner, each in value.items())
            return {inner: _nested(f"{name}.{inner}", type_, each) for inner, type_, each in found}
    elif isinstance(kind, Array) and isinstance(value, list | tuple):
        return [_nested(name, kind.element, each) for each in value]
    elif isinstance(kind, MapOf) and isinstance(value, Mapping):
        return {str(key): _nested(name, kind.value, each) for key, each in value.items()}
    raise ValueError(value)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, default=str)
