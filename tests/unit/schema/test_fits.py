"""What fits what, on types drawn at random: a partial order, of which `merge` gives upper bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.schema.conversion import convert
from lakewright.schema.fits import fits, merge, widened
from lakewright.schema.shape import plain_type
from lakewright.schema.types import Array, Chars, Decimal, MapOf, Scalar, Struct, StructField, Type
from lakewright.spec.models.type_text import parse_sql_type

_NAMES = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "date", "timestamp")
_SCALARS = st.sampled_from([Scalar(name) for name in (*_NAMES, "timestamp_ntz", "string", "binary", "void")])
_DECIMALS = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: Decimal(p, s)))
_CHARS = st.builds(Chars, st.integers(1, 9), st.booleans())


def _structs(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    names = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True)
    return names.flatmap(
        lambda found: st.tuples(*(inner for _ in found)).map(
            lambda kinds: Struct(tuple(map(StructField, found, kinds)))
        )
    )


TYPES: st.SearchStrategy[Type] = st.recursive(
    _SCALARS | _DECIMALS | _CHARS,
    lambda inner: (
        inner.map(Array) | inner.map(lambda value: MapOf(Scalar("string"), value)) | _structs(inner)
    ),
    max_leaves=5,
)


def _shape(kind: Type) -> str:
    """Return a type as text without the order of fields, which does not count."""
    if isinstance(kind, Struct):
        return f"struct<{sorted((each.name.lower(), _shape(each.type)) for each in kind.fields)}>"
    if isinstance(kind, Array):
        return f"array<{_shape(kind.element)}>"
    if isinstance(kind, MapOf):
        return f"map<{_shape(kind.key)},{_shape(kind.value)}>"
    return plain_type(kind).ddl


@given(TYPES)
def test_each_type_fits_itself(kind: Type) -> None:
    assert fits(kind, kind)


@given(TYPES, TYPES)
def test_two_types_that_fit_each_other_are_one(one: Type, other: Type) -> None:
    if fits(one, other) and fits(other, one):
        assert _shape(one) == _shape(other)


@given(TYPES, TYPES, TYPES)
def test_what_fits_is_transitive(one: Type, other: Type, third: Type) -> None:
    if fits(one, other) and fits(other, third):
        assert fits(one, third)


@given(TYPES, TYPES)
def test_a_wider_type_is_what_both_merge_to(one: Type, other: Type) -> None:
    if fits(one, other):
        merged = merge(one, other)
        assert merged is not None
        assert _shape(merged) == _shape(other)


@given(TYPES, TYPES)
def test_the_order_of_two_types_does_not_change_what_they_merge_to(one: Type, other: Type) -> None:
    found, turned = merge(one, other), merge(other, one)
    assert (found and _shape(found)) == (turned and _shape(turned))


@given(TYPES, TYPES, TYPES)
def test_merging_is_associative(one: Type, other: Type, third: Type) -> None:
    left, right = merge(one, other), merge(other, third)
    if left is not None and right is not None:
        found, turned = merge(left, third), merge(one, right)
        if found is not None and turned is not None:
            assert _shape(found) == _shape(turned)


@given(TYPES, TYPES)
def test_merging_loses_no_field(one: Type, other: Type) -> None:
    merged = merge(one, other)
    if isinstance(merged, Struct) and isinstance(one, Struct) and isinstance(other, Struct):
        names = {each.name for each in (*one.fields, *other.fields)}
        assert {each.name for each in merged.fields} == names


@given(TYPES, TYPES)
def test_conversion_is_total_and_cannot_fail_where_the_type_fits(one: Type, other: Type) -> None:
    found = convert("v", one, other, column="v")
    assert found.sql
    if one.ddl != "void" and fits(one, plain_type(other)) and plain_type(other) == other:
        assert found.fault is None


@given(TYPES, TYPES)
def test_a_table_keeps_what_it_has_when_it_is_widened(table: Type, slice_: Type) -> None:
    assert fits(table, widened(table, slice_))


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        ("int", "bigint", "bigint"),
        ("bigint", "double", "double"),
        ("decimal(10,2)", "decimal(14,4)", "decimal(14,4)"),
        ("decimal(10,4)", "decimal(14,2)", "decimal(16,4)"),
        ("bigint", "decimal(5,2)", "decimal(21,2)"),
        ("decimal(38,0)", "decimal(38,10)", None),
        ("timestamp", "timestamp_ntz", "timestamp"),
        ("bigint", "timestamp", None),
        ("string", "int", None),
        ("void", "string", "string"),
        (
            "struct<a: int, b: string>",
            "struct<B: string, c: date>",
            "struct<`a`: int, `b`: string, `c`: date>",
        ),
        ("array<void>", "array<int>", "array<int>"),
    ],
)
def test_the_narrowest_type_of_both(one: str, other: str, merged: str | None) -> None:
    found = merge(parse_sql_type(one), parse_sql_type(other))
    assert (found and found.ddl) == merged
