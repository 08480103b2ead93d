"""Types of Spark, as a project's."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    UserDefinedType,
    VarcharType,
)

from lakewright.schema.spark import type_of
from lakewright.schema.types import Array, Chars, Decimal, MapOf, Scalar, Struct, Type
from lakewright.schema.types import StructField as OwnField


class Point(UserDefinedType):
    """Two numbers."""

    @classmethod
    def sqlType(cls) -> DataType:  # noqa: N802 - Spark's name
        return ArrayType(DecimalType(5, 2), False)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (StringType(), Scalar("string")),
        (StringType("UNICODE_CI"), Scalar("string collate UNICODE_CI")),
        (NullType(), Scalar("void")),
        (DayTimeIntervalType(), Scalar("interval day to second")),
        (DecimalType(5, 2), Decimal(5, 2)),
        (CharType(3), Chars(3, is_fixed=True)),
        (VarcharType(4), Chars(4)),
        (Point(), Array(Decimal(5, 2))),
        (MapType(StringType(), ArrayType(NullType())), MapOf(Scalar("string"), Array(Scalar("void")))),
        (
            StructType([StructField("a b", StringType(), nullable=False)]),
            Struct((OwnField("a b", Scalar("string")),)),
        ),
    ],
)
def test_a_type_of_spark_has_one_form(kind: DataType, expected: Type) -> None:
    assert type_of(kind) == expected
