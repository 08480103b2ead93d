"""Casts that fail instead of losing anything."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    DataType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)

from lakewright.transform.casts import cast_error, cast_sql, limited_sql


@pytest.mark.parametrize(
    ("source", "target", "is_exact", "checks"),
    [
        (StringType(), "int", False, "is not null"),
        (StringType(), "decimal(5,1)", False, "not v rlike '[.][0-9]{1}[0-9]*[1-9]'"),
        (StringType(), "decimal(5,1)", False, "try_cast(v as decimal(38,34)) = "),
        (LongType(), "int", False, "is not null"),
        (LongType(), "double", True, "= v"),
        (DoubleType(), "int", False, "= v"),
        (DecimalType(10, 2), "decimal(8,0)", False, "= v"),
        (DecimalType(10, 4), "decimal(10,2)", False, "is not null"),
        (DecimalType(10, 4), "decimal(10,2)", True, "= v"),
        (TimestampType(), "date", False, "is not null"),
        (TimestampType(), "date", True, "= v"),
    ],
)
def test_what_would_lose_something_is_compared_with_what_was(
    source: DataType, target: str, is_exact: bool, checks: str
) -> None:
    assert checks in cast_sql("v", source, target, column="c", is_exact=is_exact)


def test_the_same_type_needs_no_cast() -> None:
    assert cast_sql("v", IntegerType(), "int", column="c") == "v"


def test_the_error_that_a_query_raised_is_read_back() -> None:
    sql = cast_sql("v", StringType(), "int", column="net `price`")
    start, end = sql[sql.index("concat('") + 8 :].split("', left(cast(v as string), 100), '")
    raised = f"{start}seven{end.rpartition(chr(39))[0]}".replace("\\'", "'")
    assert raised.replace("\u2063", "") == "column 'net `price`': the value 'seven' doesn't fit the type int"
    found = cast_error(f"job aborted: {raised} and more")
    assert found is not None
    assert found.details == {"column": "net `price`", "type": "int", "sample": "seven"}
    assert "`datatype`" in str(found.remedy)
    assert cast_error("something else") is None


def test_the_type_of_a_table_is_not_changed_by_declaring_another() -> None:
    assert "int of the table" in cast_sql("v", StringType(), "int", column="v", is_exact=True)
    found = cast_error(
        "column '\u2063v\u2063': the value '\u2063a\u2063' doesn't fit the type \u2063int of the table\u2063"
    )
    assert found is not None
    assert found.message == "column 'v': the value 'a' doesn't fit the type int of the table"
    assert found.details["type"] == "int"
    assert "`lakewright rebuild ENTITY`" in str(found.remedy)


def test_texts_of_bounded_length_are_measured() -> None:
    assert "char_length(v), 0) <= 3" in limited_sql("v", 3, column="c")
