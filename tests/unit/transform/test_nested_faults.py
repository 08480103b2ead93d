"""Why a value inside a struct, list or map does not fit; tests on Spark show the reasons."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from lakewright.errors import SpecError
from lakewright.spec.models.type_text import parse_sql_type
from lakewright.transform.nested_faults import declared_fault_sql, table_fault_sql

TEXT, WHOLE, FLOAT = StringType(), LongType(), DoubleType()


def struct(**kinds: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def test_the_first_fault_at_any_depth_names_the_path_to_it() -> None:
    source = struct(l=ArrayType(struct(q=TEXT, same=TEXT)), N=TEXT)
    target = struct(n=WHOLE, l=ArrayType(struct(q=WHOLE, same=TEXT, new=WHOLE)))
    sql = table_fault_sql("t", source, target, column="t")
    assert sql is not None
    number = "if(t.`N` is null or coalesce(try_cast(t.`N` as bigint) is not null, false), null, "
    assert sql.startswith(f"coalesce({number}")
    assert "get(filter(transform(t.`l`, x0 -> if(x0.`q` is null or " in sql
    assert "column \\'t.n\\': the value" in sql
    assert "column \\'t.l.q\\': the value" in sql
    assert "bigint of the table" in sql
    assert "same" not in sql


def test_keys_and_values_of_maps_are_looked_at_with_a_variable_of_each_depth() -> None:
    source, target = MapType(TEXT, ArrayType(TEXT)), MapType(WHOLE, ArrayType(WHOLE))
    sql = table_fault_sql("m", source, target, column="m")
    assert sql is not None
    assert sql.startswith("get(filter(transform(map_entries(m), x0 -> coalesce(if(x0.key is null or ")
    assert "get(filter(transform(x0.value, x1 -> if(x1 is null or " in sql


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (struct(a=TEXT), struct(a=TEXT, b=WHOLE)),
        (struct(a=TEXT), struct(b=WHOLE)),
        (struct(a=WHOLE), WHOLE),
        (TEXT, struct(a=WHOLE)),
        (ArrayType(TEXT), MapType(TEXT, WHOLE)),
        (struct(a=TEXT), MapType(TEXT, WHOLE)),
    ],
)
def test_nothing_is_looked_for_where_no_value_can_fail(source: DataType, target: DataType) -> None:
    assert table_fault_sql("v", source, target, column="v") is None


def test_declared_types_are_looked_at_as_values_are_converted_to_them() -> None:
    by_name = declared_fault_sql("s", struct(B=TEXT, a=TEXT), parse_sql_type("struct<b: int>"), column="s")
    assert by_name is not None
    assert "s.`B`" in by_name
    by_place = declared_fault_sql("s", struct(x=TEXT), parse_sql_type("struct<b: int>"), column="s")
    assert by_place is not None
    assert "s.`x`" in by_place
    cut = declared_fault_sql("l", ArrayType(TEXT), parse_sql_type("array<varchar(3)>"), column="l")
    assert cut is not None
    assert "<= 3" in cut
    with pytest.raises(SpecError, match="has none of the fields"):
        declared_fault_sql("s", struct(x=TEXT), parse_sql_type("struct<b: int, c: int>"), column="s")


def test_an_object_that_becomes_a_map_has_faults_in_its_names_and_values() -> None:
    sql = declared_fault_sql("m", struct(k=FLOAT, n=TEXT), parse_sql_type("map<int, int>"), column="m")
    assert sql is not None
    assert "if(m.`k` is null, null, if('k' is null or " in sql
    assert "column \\'m key\\': the value" in sql
    assert "try_cast(m.`n` as int)" in sql
