"""The canonical text behind hashes and keys, as SQL; its values are tested with Spark."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakewright.schema.sql import text_sql
from lakewright.transform.hash import hash_sql, value_class


def field(name: str, kind: DataType) -> StructField:
    return StructField(name, kind)


def test_order_and_case_of_columns_do_not_count() -> None:
    one = hash_sql([field("a", IntegerType()), field("B", StringType())])
    other = hash_sql([field("b", StringType()), field("a", IntegerType())])
    assert one.replace("`B`", "`b`") == other


def test_without_columns_there_is_still_a_hash() -> None:
    assert hash_sql([]) == "sha2(concat_ws(''), 256)"


def test_names_tell_their_own_end() -> None:
    assert "'ngröße;'" in hash_sql([field("größe", IntegerType())])
    assert text_sql(r"na\;\\b;") in hash_sql([field("a;\\b", IntegerType())])


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (ByteType(), LongType(), True),
        (IntegerType(), DecimalType(10, 2), True),
        (FloatType(), DoubleType(), True),
        (IntegerType(), StringType(), False),
        (IntegerType(), DoubleType(), False),
        (TimestampType(), TimestampNTZType(), False),
        (NullType(), StringType(), True),
    ],
)
def test_types_whose_equal_values_hash_alike(one: DataType, other: DataType, is_same: bool) -> None:
    assert (value_class(one) == value_class(other)) is is_same


def test_text_grows_with_the_depth_of_a_type_not_with_its_power() -> None:
    def nested(depth: int) -> DataType:
        return ArrayType(nested(depth - 1)) if depth else MapType(StringType(), IntegerType())

    sizes = [len(hash_sql([field("a", nested(depth))])) for depth in (2, 4, 8)]
    assert sizes[2] - sizes[1] <= 2 * (sizes[1] - sizes[0]) + 20


def test_fields_of_a_struct_are_sorted() -> None:
    def struct(*names: str) -> DataType:
        return StructType([field(name, StringType()) for name in names])

    assert hash_sql([field("s", struct("x", "y"))]) == hash_sql([field("s", struct("y", "x"))])
