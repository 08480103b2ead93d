"""Differences between two lists of columns, also inside of them, as values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from lakewright.schema.shape import NESTED, parts, plain_type
from lakewright.schema.types import VOID, Struct, Type


class Named(Protocol):
    """A column: a field of a struct, or of a schema."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def type(self) -> Type:
        """Its type."""

    @property
    def nullable(self) -> bool:
        """Whether it may be null."""


class Change(StrEnum):
    """How a column differs from the expected one."""

    MISSING = "missing"
    NEW = "new"
    RETYPED = "retyped"
    NULLABLE = "nullable"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference.

    Attributes:
        change: What differs.
        path: The column, or the path of a field inside it, joined by dots; all columns' names if they moved.
        actual: The type that there is; None for a missing column.
        expected: The type that is expected; None for a new column.
        may_be_null: Whether the actual column may be null.
    """

    change: Change
    path: str
    actual: Type | None = None
    expected: Type | None = None
    may_be_null: bool = True


@dataclass(frozen=True, slots=True)
class DiffRules:
    """The aspects of columns that count as differences. A column that only one side has always counts.

    Attributes:
        are_inside_named: Whether differences inside of a type are named by their paths, and the order of
            fields does not count; otherwise a type differs as a whole.
    """

    types: bool = True
    nullability: bool = True
    case: bool = True
    order: bool = True
    are_inside_named: bool = False


ALL = DiffRules()
INSIDE = DiffRules(nullability=False, case=False, order=False, are_inside_named=True)
"""Of types only, each field by its path."""


def diff(
    actual: Iterable[Named], expected: Iterable[Named], rules: DiffRules = ALL
) -> tuple[Difference, ...]:
    """Return how columns differ from the expected ones: what is missing, what is new, then the others."""
    return tuple(_differences(list(actual), list(expected), rules, ""))


def is_same(one: Type, other: Type) -> bool:
    """Return whether two types are equal but for the lengths of texts, and the order and case of fields.

    Example:
        >>> from lakewright.schema.types import Scalar, StructField
        >>> fields = (StructField("a", Scalar("int")), StructField("b", Scalar("date")))
        >>> is_same(Struct(fields), Struct(fields[::-1]))
        True
    """
    return not any(_inside(one, other, ""))


def _differences(
    actual: Sequence[Named], expected: Sequence[Named], rules: DiffRules, within: str
) -> Iterator[Difference]:
    def key(column: Named) -> str:
        return column.name if rules.case else column.name.lower()

    present = {key(column): column for column in actual}
    wanted = {key(column): column for column in expected}
    found = [Difference(Change.MISSING, within + wanted[name].name) for name in wanted if name not in present]
    found += [
        Difference(Change.NEW, within + present[name].name, present[name].type)
        for name in present
        if name not in wanted
    ]
    for name, column in wanted.items():
        if name in present:
            found += _of_column(present[name], column, rules, within)
    yield from found
    if rules.order and not found and list(present) != list(wanted):
        yield Difference(Change.MOVED, ", ".join(column.name for column in actual))


def _of_column(actual: Named, expected: Named, rules: DiffRules, within: str) -> Iterator[Difference]:
    path = within + expected.name
    if rules.types and rules.are_inside_named:
        yield from _inside(actual.type, expected.type, path)
    elif rules.types and plain_type(actual.type) != plain_type(expected.type):
        yield Difference(Change.RETYPED, path, actual.type, expected.type)
    if rules.nullability and actual.nullable != expected.nullable:
        yield Difference(Change.NULLABLE, path, actual.type, expected.type, actual.nullable)


def _inside(actual: Type, expected: Type, path: str) -> Iterator[Difference]:
    """Yield the differences of two types, those of fields and elements by their paths."""
    if isinstance(actual, Struct) and isinstance(expected, Struct):
        yield from _differences(actual.fields, expected.fields, INSIDE, f"{path}.")
    elif isinstance(actual, NESTED) and type(actual) is type(expected):
        for _, part, twin in parts(actual, expected):
            yield from _inside(part, twin or VOID, path)
    elif plain_type(actual) != plain_type(expected):
        yield Difference(Change.RETYPED, path, actual, expected)
