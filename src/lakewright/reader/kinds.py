"""Kinds of the values in JSON: what Spark's `schema_of_variant_agg` tells of all records of a slice.

A kind is a type: `bigint`, `double`, `boolean`, `string`, a decimal, a list or a struct; `void` for what is
only null; `variant` for values of several kinds. Numbers with an exponent, or of more than 38 digits, are
`double`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import reduce

from lakewright.schema.types import Array, Decimal, MapOf, Scalar, Struct, StructField, Type

__all__ = ["DEEPEST", "MIXED", "NOTHING", "is_mixed", "is_nothing", "merged", "parse_kind", "same_names"]

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
_MOST_DIGITS = 38


def parse_kind(text: str) -> Type:
    """Return the kind that Spark writes.

    Example:
        >>> parse_kind("OBJECT<a: BIGINT, `b c`: ARRAY<VOID>>").ddl
        'struct<`a`: bigint, `b c`: array<void>>'

    Raises:
        ValueError: The text is none of Spark's.
    """
    tokens = _tokens(text)
    kind = _kind(tokens, next(tokens, None), depth=0)
    if next(tokens, None) is not None:
        raise ValueError(f"text after a kind: {text}")
    return kind


def _tokens(text: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"not a kind of Spark: {text[at : at + 50]}")
        yield found
        at = found.end()


def _kind(tokens: Iterator[re.Match[str]], first: re.Match[str] | None, *, depth: int) -> Type:
    """Return the kind that a token begins."""
    if first is None:
        raise ValueError("the text of a kind ends too early")
    if first["precision"]:
        return Decimal(int(first["precision"]), int(first["scale"]))
    if first["word"]:
        return Scalar(first["word"].lower())
    if not first["open"]:
        raise ValueError(f"not a kind of Spark: {first[0]}")
    if depth == DEEPEST:
        _skip(tokens)
        return MIXED
    if first["open"] == "ARRAY<":
        element = _kind(tokens, next(tokens, None), depth=depth + 1)
        _check_closed(next(tokens, None))
        return Array(element)
    fields = tuple(_fields(tokens, depth=depth + 1))
    # SQL has no name without characters: inside of others, such an object stays JSON.
    return MIXED if depth and not all(field.name for field in fields) else Struct(fields)


def _fields(tokens: Iterator[re.Match[str]], *, depth: int) -> Iterator[StructField]:
    for token in tokens:
        if token["close"]:
            return
        if token["next"]:
            continue
        if token["plain"] is None and token["quoted"] is None:
            raise ValueError(f"not the name of a field: {token[0]}")
        name = token["plain"] if token["quoted"] is None else token["quoted"].replace("``", "`")
        yield StructField(name, _kind(tokens, next(tokens, None), depth=depth))
    _check_closed(None)


def _skip(tokens: Iterator[re.Match[str]]) -> None:
    """Take the tokens up to the end of what is open."""
    depth = 1
    while depth:
        token = next(tokens, None)
        if token is None:
            _check_closed(None)
        else:
            depth += bool(token["open"]) - bool(token["close"])


def _check_closed(token: re.Match[str] | None) -> None:
    if token is None or not token["close"]:
        raise ValueError("a list or an object of a kind is not closed")


def is_nothing(kind: Type) -> bool:
    """Return whether a kind has no values: nulls, empty lists and objects, and what has only these inside."""
    if isinstance(kind, Struct):
        return all(is_nothing(field.type) for field in kind.fields)
    return is_nothing(kind.element) if isinstance(kind, Array) else kind == NOTHING


def is_mixed(kind: Type) -> bool:
    """Return whether a type has values of several kinds, or something with such values inside."""
    if isinstance(kind, Struct):
        return any(is_mixed(field.type) for field in kind.fields)
    if isinstance(kind, MapOf):
        return is_mixed(kind.value)
    return is_mixed(kind.element) if isinstance(kind, Array) else kind == MIXED


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
    return Decimal(precision, scale) if precision <= _MOST_DIGITS else Scalar("double")


def _is_number(kind: Type) -> bool:
    return isinstance(kind, Decimal) or kind in (Scalar("bigint"), Scalar("double"))


def same_names(kind: Struct) -> Iterator[tuple[StructField, ...]]:
    """Yield the fields of an object that have values, those together whose names differ only by case."""
    found: dict[str, list[StructField]] = {}
    for field in kind.fields:
        if not is_nothing(field.type):
            found.setdefault(field.name.lower(), []).append(field)
    yield from map(tuple, found.values())
