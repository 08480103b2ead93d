"""Kinds of the values in JSON, and the types in which Spark's reader of JSON keeps all of them.

A kind is what Spark's `schema_of_variant_agg` returns of all records: `bigint`, `double`, `boolean`,
`string`, a decimal, a list or a struct; `void` for what is only null; `variant` for values of several kinds.
Numbers with an exponent, or of more than 38 digits, are `double`.

Where no type is known, whole numbers are `bigint`. Other numbers are `double` if that holds all of them
exactly, and decimals otherwise. What is of several kinds is a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from lakewright.schema.scalars import class_of
from lakewright.schema.shape import has_part, leaves, mapped, parts, united
from lakewright.schema.types import (
    EXACT_DIGITS,
    MOST_DIGITS,
    Array,
    Decimal,
    MapOf,
    Scalar,
    Struct,
    StructField,
    Type,
)

DEEPEST = 100
"""Levels of lists and structs that are told apart; what is deeper is of several kinds."""

NOTHING, MIXED = Scalar("void"), Scalar("variant")

_TOKEN = re.compile(
    r"(?P<open>OBJECT<|ARRAY<)|DECIMAL\((?P<precision>\d+),(?P<scale>\d+)\)|(?P<close>>)|(?P<next>, )|"
    r"(?:`(?P<quoted>(?:[^`]|``)*)`|(?P<plain>\w+)): |(?P<word>[A-Z_]+)",
    re.DOTALL,
)
_BIGINT = Decimal(20, 0)
"""The decimals that hold all values of `bigint`, as Spark widens it."""
_TEXT, _DOUBLE = Scalar("string"), Scalar("double")
_LONG_DIGITS = range(19, 20)
"""Digits of whole numbers above `bigint`; such columns, often of unsigned numbers, get 20 digits."""


@dataclass(frozen=True, slots=True)
class JsonColumn:
    """A column of a JSON slice.

    Attributes:
        name: Its name; that of the first field if names differ only by case.
        raw: The type in which its values are read without loss; `void` if it has none.
        inferred: The type that its values have if nothing is known of it.
        sources: The fields that it is made of.
        is_known: Whether its type is declared or the table's.
        is_sure: Whether the types of all decimals in it are.
    """

    name: str
    raw: Type
    inferred: Type
    sources: tuple[StructField, ...]
    is_known: bool
    is_sure: bool = True

    @property
    def field(self) -> StructField:
        """The column as it is read."""
        return StructField(self.name, self.raw)

    @property
    def is_void(self) -> bool:
        """Whether it has no values."""
        return self.raw == NOTHING

    def as_written(self) -> JsonColumn:
        """Return the column with texts of its values as they are written, where they are of several kinds."""
        return replace(self, raw=mapped(self.raw, lambda part: _TEXT if part == MIXED else part))


def json_columns(
    kind: Struct, wanted: Callable[[str], Type | None], *, is_exact: bool = False
) -> tuple[JsonColumn, ...]:
    """Return the columns of records of a kind.

    Args:
        kind: The kind of the records.
        wanted: Returns the type that is declared for a column, or that the table's has; None without one.
        is_exact: Whether a double holds each number whose kind is that.
    """
    with_values = {fields[0].name: fields for fields in same_names(kind)}
    taken = {field.name for fields in with_values.values() for field in fields}
    lower = {name.lower() for name in with_values}
    columns = []
    for field in kind.fields:
        target = wanted(field.name)
        if field.name in with_values:
            sources = with_values[field.name]
            raw, inferred = _types(merged(each.type for each in sources), target, is_exact)
            is_sure = not _has_unknown_decimal(raw, target)
            columns.append(JsonColumn(field.name, raw, inferred, sources, target is not None, is_sure))
        elif field.name not in taken and field.name.lower() not in lower:
            lower.add(field.name.lower())
            columns.append(JsonColumn(field.name, NOTHING, NOTHING, (field,), target is not None))
    return tuple(columns)


def _types(kind: Type, target: Type | None, is_exact: bool) -> tuple[Type, Type]:
    """Return the raw type and the inferred type of what has values."""
    if target == MIXED:
        return MIXED, MIXED
    # A variant would lose digits of numbers that are kept as they are written.
    if _is_text(target) and kind not in (_TEXT, _DOUBLE):
        return MIXED, _types(kind, None, is_exact)[1]
    inferred = _inferred(kind)
    if isinstance(kind, Struct):
        return (
            _of_map(kind, target, is_exact)
            if isinstance(target, MapOf)
            else _of_struct(kind, target, is_exact)
        )
    if isinstance(kind, Array):
        raw, inferred = _types(kind.element, target.element if isinstance(target, Array) else None, is_exact)
        return Array(raw), Array(inferred)
    if isinstance(kind, Decimal):
        exact = Decimal(20, 0) if kind.scale == 0 and kind.precision in _LONG_DIGITS else kind
        return (_DOUBLE if kind.precision <= EXACT_DIGITS else exact), inferred
    # A double does not show how it was written, and may not hold it.
    is_written = kind == _DOUBLE and (_is_text(target) or not is_exact)
    # A text of a whole number has digits only, a number may be 7.0 or 2.5e2.
    as_written = MIXED if target is not None and class_of(target) == "whole" else _TEXT
    return (as_written if is_written else kind), inferred


def _inferred(kind: Type) -> Type:
    if isinstance(kind, Decimal):
        return _DOUBLE
    return _TEXT if kind == MIXED else kind


def _of_struct(kind: Struct, target: Type | None, is_exact: bool) -> tuple[Type, Type]:
    inside = {f.name.lower(): f.type for f in target.fields} if isinstance(target, Struct) else {}
    raw, inferred = [], []
    for sources in same_names(kind):
        name = sources[0].name
        types = _types(merged(each.type for each in sources), inside.get(name.lower()), is_exact)
        raw.append(StructField(name, types[0]))
        inferred.append(StructField(name, types[1]))
    return Struct(tuple(raw)), Struct(tuple(inferred))


def _of_map(kind: Struct, target: MapOf, is_exact: bool) -> tuple[Type, Type]:
    values = merged(field.type for field in kind.fields)
    if is_nothing(values):
        return MapOf(_TEXT, MIXED), MapOf(_TEXT, _TEXT)  # the keys are values
    raw, inferred = _types(values, target.value, is_exact)
    return MapOf(_TEXT, raw), MapOf(_TEXT, inferred)


def _has_unknown_decimal(raw: Type, target: Type | None) -> bool:
    if target is None and isinstance(raw, Decimal):
        return True
    return any(_has_unknown_decimal(part, twin) for _, part, twin in parts(raw, target))


def _is_text(kind: Type | None) -> bool:
    return kind is not None and class_of(kind) == "text"


def with_doubles(raw: Type) -> Type:
    """Return a raw type with doubles in place of its decimals."""
    return mapped(raw, lambda part: _DOUBLE if isinstance(part, Decimal) else part)


def exact_type(raw: Type, inferred: Type) -> Type:
    """Return an inferred type with the decimals of the raw one."""
    return united(raw, inferred, lambda own, each: own if isinstance(own, Decimal) else each) or inferred


def parse_kind(text: str) -> Type:
    """Return the kind that Spark writes.

    Example:
        >>> parse_kind("OBJECT<a: BIGINT, `b c`: ARRAY<VOID>>").ddl
        'struct<`a`: bigint, `b c`: array<void>>'

    Raises:
        ValueError: The text is none of Spark's.
    """
    if left := _TOKEN.sub("", text):
        raise ValueError(f"not a kind of Spark: {left[:50]}")
    parts, depth = [], 0
    for token in _TOKEN.finditer(text):
        depth -= bool(token["close"])
        if depth <= DEEPEST:
            parts.append(_as_json(token))
        depth += bool(token["open"])
    try:
        _, found = json.loads(f"[null{''.join(parts)}]")
        return _kind(found, 0)
    except (TypeError, ValueError) as error:
        raise ValueError(f"not a kind of Spark: {text[:50]}") from error


def _as_json(token: re.Match[str]) -> str:
    """Return a part of a kind as JSON has it: a name, or a list of one and of what is inside."""
    if token["open"]:
        return f',["{token["open"]}"'
    if token["close"] or token["next"]:
        return "]" if token["close"] else ""
    if token["precision"]:
        return f',["DECIMAL",{token["precision"]},{token["scale"]}]'
    quoted = token["quoted"]
    name = token["plain"] or token["word"] if quoted is None else quoted.replace("``", "`")
    return f",{json.dumps(name)}"


def _kind(found: Any, depth: int) -> Type:
    if isinstance(found, str):
        return Scalar(found.lower())
    name, *inside = found
    if name == "DECIMAL":
        return Decimal(*inside)
    if depth == DEEPEST:
        return MIXED
    if name == "ARRAY<":
        (element,) = inside
        return Array(_kind(element, depth + 1))
    pairs = zip(inside[::2], inside[1::2], strict=True)
    fields = tuple(StructField(str(each), _kind(kind, depth + 1)) for each, kind in pairs)
    # SQL has no name without characters: inside of others, such an object stays JSON.
    return MIXED if depth and not all(field.name for field in fields) else Struct(fields)


def is_nothing(kind: Type) -> bool:
    """Return whether a kind has no values: nulls, empty lists and objects, and what has only these inside."""
    return all(leaf == NOTHING for _, leaf in leaves(kind, ""))


def is_mixed(kind: Type) -> bool:
    """Return whether a type has values of several kinds, or something with such values inside."""
    return has_part(kind, lambda part: part == MIXED)


def merged(kinds: Iterable[Type]) -> Type:
    """Return the kind of values of some kinds together, as Spark merges them."""
    start: Type = NOTHING
    return reduce(_merged, kinds, start)


def _merged(one: Type, other: Type) -> Type:
    if other in (one, NOTHING):
        return one
    if one == NOTHING:
        return other
    if isinstance(one, Struct) and isinstance(other, Struct):
        names: dict[str, list[Type]] = {}
        for field in (*one.fields, *other.fields):
            names.setdefault(field.name, []).append(field.type)
        return Struct(tuple(StructField(name, merged(kinds)) for name, kinds in sorted(names.items())))
    if isinstance(one, Array) and isinstance(other, Array):
        return Array(_merged(one.element, other.element))
    return _merged_numbers(one, other)


def _merged_numbers(one: Type, other: Type) -> Type:
    if not (_is_number(one) and _is_number(other)):
        return MIXED
    ours, theirs = (_BIGINT if kind == Scalar("bigint") else kind for kind in (one, other))
    if not (isinstance(ours, Decimal) and isinstance(theirs, Decimal)):
        return Scalar("double")
    scale = max(ours.scale, theirs.scale)
    precision = max(ours.precision - ours.scale, theirs.precision - theirs.scale) + scale
    return Decimal(precision, scale) if precision <= MOST_DIGITS else Scalar("double")


def _is_number(kind: Type) -> bool:
    return isinstance(kind, Decimal) or kind in (Scalar("bigint"), Scalar("double"))


def same_names(kind: Struct) -> Iterator[tuple[StructField, ...]]:
    """Yield the fields of an object that have values, those together whose names differ only by case."""
    found: dict[str, list[StructField]] = {}
    for field in kind.fields:
        if not is_nothing(field.type):
            found.setdefault(field.name.lower(), []).append(field)
    yield from map(tuple, found.values())
