"""Which fields a value of a nested type keeps when it is converted; tests on Spark show the values."""

from __future__ import annotations

import pytest

from lakewright.errors import SpecError
from lakewright.spec.models.type_text import parse_sql_type
from lakewright.transform.conversion import converted_sql, lost_fields


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


def test_a_struct_of_other_fields_is_refused_unless_there_are_as_many() -> None:
    one, other, more = map(
        parse_sql_type, ("struct<a: int>", "struct<b: bigint>", "struct<b: bigint, c: int>")
    )
    assert (
        converted_sql("v", one, other, column="v")
        == "if(v is null, null, named_struct('b', cast(v.`a` as bigint)))"
    )
    with pytest.raises(SpecError, match="column 'v' has none of the fields b, c"):
        converted_sql("v", one, more, column="v")


def test_a_struct_becomes_a_map_of_what_it_has() -> None:
    made = converted_sql(
        "t", parse_sql_type("struct<a: string, b: int>"), parse_sql_type("map<string, string>"), column="t"
    )
    assert made == (
        "if(t is null, null, map_from_entries(filter(array(struct('a' as key, t.`a` as value), "
        "struct('b' as key, cast(t.`b` as string) as value)), x0 -> x0.value is not null)))"
    )


def test_a_name_that_is_no_key_of_a_map_fails_only_rows_that_have_it() -> None:
    made = converted_sql("t", parse_sql_type("struct<a: int>"), parse_sql_type("map<int, int>"), column="t")
    assert "struct(if(t.`a` is null, null, cast('a' as int)) as key, t.`a` as value)" in made
