"""Differences of columns, as values."""

from __future__ import annotations

import pytest

from lakewright.schema.diff import Change, Difference, DiffRules, diff, is_same
from lakewright.schema.types import Struct, StructField
from lakewright.spec.models.type_text import parse_sql_type

ALL = DiffRules()
INSIDE = DiffRules(nullability=False, case=False, order=False, are_inside_named=True)


def columns(text: str) -> tuple[StructField, ...]:
    """Return columns given as the fields of a struct."""
    kind = parse_sql_type(f"struct<{text}>")
    assert isinstance(kind, Struct)
    return kind.fields


def found(actual: str, expected: str, rules: DiffRules = ALL) -> list[tuple[str, str]]:
    return [(each.change.value, each.path) for each in diff(columns(actual), columns(expected), rules)]


def test_what_differs_is_a_value_with_the_types_of_both() -> None:
    told = diff(columns("a: int, c: string, n: date"), columns("a: bigint, b: int, n: date not null"))
    one, other, day = map(parse_sql_type, ("int", "bigint", "date"))
    assert told == (
        Difference(Change.MISSING, "b"),
        Difference(Change.NEW, "c", parse_sql_type("string")),
        Difference(Change.RETYPED, "a", one, other),
        Difference(Change.NULLABLE, "n", day, day, may_be_null=True),
    )
    (strict,) = diff(columns("n: date not null"), columns("n: date"))
    assert (strict.change, strict.may_be_null) == (Change.NULLABLE, False)


@pytest.mark.parametrize(
    ("actual", "expected", "rules", "told"),
    [
        ("a: int, b: int", "a: int, b: int", ALL, []),
        ("b: int, a: int", "a: int, b: int", ALL, [("moved", "b, a")]),
        ("b: int, a: int", "a: int, b: int", DiffRules(order=False), []),
        ("b: int, a: date", "a: int, b: int", ALL, [("retyped", "a")]),
        ("A: int", "a: int", ALL, [("missing", "a"), ("new", "A")]),
        ("A: int", "a: int", DiffRules(case=False), []),
        ("A: int", "a: date", DiffRules(case=False), [("retyped", "a")]),
        ("a: int", "a: date", DiffRules(types=False), []),
        ("a: int", "b: int", DiffRules(False, False, False, False), [("missing", "b"), ("new", "a")]),
        ("a: int", "a: int not null", DiffRules(nullability=False), []),
        ("a: string", "a: varchar(3)", ALL, []),
        ("a: char(2)", "a: varchar(3)", ALL, []),
    ],
)
def test_aspects_that_do_not_count_make_no_difference(
    actual: str, expected: str, rules: DiffRules, told: list[tuple[str, str]]
) -> None:
    assert found(actual, expected, rules) == told


def test_a_type_differs_as_a_whole_unless_what_is_inside_is_named() -> None:
    actual, expected = "s: struct<a: int, b: date>", "s: struct<b: date, a: bigint>"
    assert found(actual, expected) == [("retyped", "s")]
    assert found(actual, expected, INSIDE) == [("retyped", "s.a")]


@pytest.mark.parametrize(
    ("actual", "expected", "told"),
    [
        ("s: struct<b: int, A: int>", "s: struct<a: int, b: int>", []),
        (
            "s: struct<t: struct<x: int, z: int>>",
            "s: struct<t: struct<x: int, y: int>>",
            [("missing", "s.t.y"), ("new", "s.t.z")],
        ),
        ("l: array<struct<a: int>>", "l: array<struct<a: date>>", [("retyped", "l.a")]),
        (
            "m: map<string, struct<a: int>>",
            "m: map<string, struct<b: int>>",
            [("missing", "m.b"), ("new", "m.a")],
        ),
        ("m: map<int, int>", "m: map<date, date>", [("retyped", "m"), ("retyped", "m")]),
        ("l: array<int>", "l: map<string, int>", [("retyped", "l")]),
        ("s: struct<a: int>", "s: int", [("retyped", "s")]),
        ("l: array<varchar(3)>", "l: array<string>", []),
        ("L: struct<A: date>, n: int", "l: struct<a: int>", [("new", "n"), ("retyped", "l.a")]),
    ],
)
def test_differences_inside_are_named_by_paths_and_order_and_case_of_fields_do_not_count(
    actual: str, expected: str, told: list[tuple[str, str]]
) -> None:
    assert found(actual, expected, INSIDE) == told


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("struct<a: int, b: date>", "struct<B: date, A: int>", True),
        ("array<varchar(3)>", "array<string>", True),
        ("struct<a: int not null>", "struct<a: int>", True),
        ("struct<a: int>", "struct<a: int, b: int>", False),
        ("map<int, int>", "map<bigint, int>", False),
        ("decimal(5,2)", "decimal(5,1)", False),
    ],
)
def test_two_types_are_the_same_but_for_what_does_not_count(one: str, other: str, expected: bool) -> None:
    assert is_same(parse_sql_type(one), parse_sql_type(other)) is expected
    assert is_same(parse_sql_type(other), parse_sql_type(one)) is expected
