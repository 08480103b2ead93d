"""SQL and types for parts of columns."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, LongType, StringType, StructType
from tests.unit.slices.test_json_values import struct

from lakewright.slices.json_paths import any_sql, first_sql, max_sql, replaced_sql, with_types

TEXT, WHOLE = StringType(), LongType()


def test_what_holds_for_a_part_is_asked_of_all_elements_of_the_lists_around_it() -> None:
    path = ("a", None, "b c", None)
    assert any_sql("v", path, lambda each: f"{each} > 0") == (
        "coalesce(exists(v.`a`, x0 -> coalesce(exists(x0.`b c`, x1 -> x1 > 0), false)), false)"
    )
    assert max_sql("v", path[:3], lambda each: f"length({each})") == (
        "array_max(transform(v.`a`, x0 -> length(x0.`b c`)))"
    )
    assert first_sql("v", (None,), lambda each: f"f({each})") == (
        "get(filter(transform(v, x0 -> f(x0)), fault -> fault is not null), 0)"
    )
    assert any_sql("v", (), lambda each: f"{each} > 0") == "v > 0"


def test_parts_are_replaced_and_everything_else_is_kept() -> None:
    kind = struct(a=struct(b=TEXT, c=TEXT), l=ArrayType(ArrayType(struct(q=TEXT))), z=TEXT)
    parts = {("v", "a", "b"): "f({})".format, ("v", "l", None, None, "q"): "g({})".format}
    assert replaced_sql("v", kind, parts, ("v",)) == (
        "if(v is null, null, named_struct("
        "'a', if(v.`a` is null, null, named_struct('b', f(v.`a`.`b`), 'c', v.`a`.`c`)), "
        "'l', transform(v.`l`, x0 -> transform(x0, x1 -> "
        "if(x1 is null, null, named_struct('q', g(x1.`q`))))), 'z', v.`z`))"
    )
    types = with_types(struct(v=kind), dict.fromkeys(parts, WHOLE))
    assert isinstance(types, StructType)
    assert types.simpleString() == (
        "struct<v:struct<a:struct<b:bigint,c:string>,l:array<array<struct<q:bigint>>>,z:string>>"
    )
