"""The shapes of types: fields by name, at any depth; tests on Spark show the values."""

from __future__ import annotations

import pytest

from lakewright.schema.shape import (
    arranged,
    comparable_sql,
    has_part,
    joined_shape,
    leaves,
    lost_fields,
    matched_fields,
    plain_type,
    with_names,
    without_void,
)
from lakewright.schema.types import VOID, Struct
from lakewright.spec.models.type_text import parse_sql_type


def struct(text: str) -> Struct:
    kind = parse_sql_type(text)
    assert isinstance(kind, Struct)
    return kind


@pytest.mark.parametrize(
    ("source", "target", "lost"),
    [
        ("struct<a: int, b: int>", "struct<B: int>", ["v.a"]),
        ("struct<a: struct<x: int, y: int>>", "struct<a: struct<y: int>>", ["v.a.x"]),
        ("array<struct<a: int, b: int>>", "array<struct<b: int>>", ["v.a"]),
        ("map<string, struct<a: int, b: int>>", "map<string, struct<b: int>>", ["v.a"]),
        ("struct<a: int, b: int>", "struct<x: int, y: int>", []),
        ("int", "struct<a: int>", []),
    ],
)
def test_fields_that_the_target_lacks_are_lost(source: str, target: str, lost: list[str]) -> None:
    assert list(lost_fields(parse_sql_type(source), parse_sql_type(target), "v")) == lost


@pytest.mark.parametrize(
    ("source", "target", "by_position", "expected"),
    [
        ("struct<a: int, b: int>", "struct<B: int, A: int>", False, ["b", "a"]),
        ("struct<a: int>", "struct<a: int, c: int>", False, ["a", None]),
        ("struct<a: int>", "struct<b: int>", False, [None]),
        ("struct<a: int>", "struct<b: int>", True, ["a"]),
        ("struct<a: int, b: int>", "struct<x: int, y: int>", True, ["a", "b"]),
        ("struct<a: int, b: int>", "struct<x: int, b: int>", True, [None, "b"]),
        ("struct<a: int>", "struct<x: int, y: int>", True, [None, None]),
    ],
)
def test_fields_are_matched_by_name_and_by_position_only_where_that_is_asked_for(
    source: str, target: str, by_position: bool, expected: list[str | None]
) -> None:
    found = matched_fields(struct(source), struct(target), by_position=by_position)
    assert [each and each.name for each in found] == expected


@pytest.mark.parametrize(
    ("kind", "sql"),
    [
        ("int", "v"),
        ("array<int>", "v"),
        ("struct<a: array<int>>", "v"),
        ("map<string, int>", "array_sort(transform(map_entries(v), x0 -> struct(x0.key, x0.value)))"),
        (
            "array<map<string, int>>",
            "transform(v, x0 -> array_sort(transform(map_entries(x0), x1 -> struct(x1.key, x1.value))))",
        ),
        (
            "struct<a: int, m: map<string, int>>",
            "if(v is null, null, named_struct('a', v.`a`, 'm', "
            "array_sort(transform(map_entries(v.`m`), x0 -> struct(x0.key, x0.value)))))",
        ),
    ],
)
def test_maps_become_lists_that_can_be_compared(kind: str, sql: str) -> None:
    assert comparable_sql("v", parse_sql_type(kind)) == sql


@pytest.mark.parametrize(
    ("one", "other", "joined"),
    [
        ("struct<a: int>", "struct<b: bigint, A: bigint>", "struct<`a`: int, `b`: bigint>"),
        ("struct<a: int not null>", "struct<b: int not null>", "struct<`a`: int, `b`: int>"),
        ("array<struct<a: int>>", "array<struct<b: int>>", "array<struct<`a`: int, `b`: int>>"),
        (
            "map<string, struct<a: int>>",
            "map<int, struct<b: int>>",
            "map<string,struct<`a`: int, `b`: int>>",
        ),
        ("int", "struct<a: int>", "int"),
        ("struct<a: struct<x: int>>", "struct<a: struct<y: int>>", "struct<`a`: struct<`x`: int, `y`: int>>"),
    ],
)
def test_a_joined_shape_has_the_fields_of_both(one: str, other: str, joined: str) -> None:
    assert joined_shape(parse_sql_type(one), parse_sql_type(other)).ddl == joined


@pytest.mark.parametrize(
    ("own", "shape", "expected"),
    [
        ("struct<b: int>", "struct<a: int, b: bigint>", "struct<`a`: int, `b`: int>"),
        ("struct<b: int, a: date>", "struct<A: int, b: int>", "struct<`A`: date, `b`: int>"),
        ("struct<gone: int>", "struct<a: int>", "struct<`a`: int>"),
        ("array<struct<b: int>>", "array<struct<a: int, b: date>>", "array<struct<`a`: int, `b`: int>>"),
        ("map<int, struct<b: int>>", "map<string, struct<b: date>>", "map<int,struct<`b`: int>>"),
        ("int", "struct<a: int>", "int"),
    ],
)
def test_a_type_is_arranged_as_a_shape_and_keeps_its_own_types(own: str, shape: str, expected: str) -> None:
    assert arranged(parse_sql_type(own), parse_sql_type(shape)).ddl == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("void", None),
        ("int", "int"),
        ("array<void>", None),
        ("array<array<void>>", None),
        ("map<string, void>", None),
        ("struct<a: void, b: array<void>>", None),
        ("struct<a: int, b: struct<c: void>>", "struct<`a`: int>"),
        ("array<struct<a: void, b: date>>", "array<struct<`b`: date>>"),
        ("map<string, struct<a: int, b: void>>", "map<string,struct<`a`: int>>"),
    ],
)
def test_parts_without_a_type_are_left_out(kind: str, expected: str | None) -> None:
    found = without_void(parse_sql_type(kind))
    assert (found and found.ddl) == expected


def test_fields_get_other_names_at_any_depth() -> None:
    kind = parse_sql_type("map<string, array<struct<`a b`: int, c: struct<`d e`: int>>>>")
    found = with_names(kind, lambda name: name.replace(" ", ""))
    assert found.ddl == "map<string,array<struct<`ab`: int, `c`: struct<`de`: int>>>>"


def test_leaves_have_the_paths_of_fields_in_lower_case() -> None:
    kind = parse_sql_type("struct<A: int, l: array<struct<B: date>>, m: map<string, array<double>>>")
    found = [(path, leaf.ddl) for path, leaf in leaves(kind, "s")]
    assert found == [("s.a", "int"), ("s.l.b", "date"), ("s.m", "double")]


def test_texts_of_bounded_length_are_plain_ones_for_spark() -> None:
    kind = parse_sql_type("struct<a: array<varchar(3)> not null, m: map<char(2), int>>")
    assert plain_type(kind).ddl == "struct<`a`: array<string>, `m`: map<string,int>>"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("void", True), ("array<struct<a: void>>", True), ("map<void, int>", True), ("map<int, date>", False)],
)
def test_a_part_is_found_at_any_depth(kind: str, expected: bool) -> None:
    assert has_part(parse_sql_type(kind), lambda each: each == VOID) is expected
