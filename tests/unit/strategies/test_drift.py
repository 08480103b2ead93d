"""`processing-strategies.md`, "Schema Drift": a slice's columns beside its table's."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from lakewright.errors import SchemaDriftError
from lakewright.strategies.drift import align


def columns(**kinds: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def struct(**kinds: DataType) -> StructType:
    return columns(**kinds)


@pytest.mark.parametrize(
    ("table", "slice_", "is_widened"),
    [
        (IntegerType(), LongType(), True),
        (ShortType(), IntegerType(), True),
        (LongType(), IntegerType(), False),
        (FloatType(), DoubleType(), True),
        (DoubleType(), FloatType(), False),
        (DecimalType(10, 2), DecimalType(12, 2), True),
        (DecimalType(10, 2), DecimalType(12, 4), True),
        (DecimalType(10, 2), DecimalType(10, 4), False),
        (StringType(), IntegerType(), False),
        (DateType(), StringType(), False),
    ],
)
def test_a_type_is_widened_where_a_table_can_be_else_the_value_is_cast(
    table: DataType, slice_: DataType, is_widened: bool
) -> None:
    found = align(columns(v=slice_), columns(v=table), policy="evolve", fixed=[])

    assert found.widens is is_widened
    assert found.evolves is is_widened
    assert found.drift.retyped == {"v": (table.simpleString(), slice_.simpleString())}
    assert (found.columns["v"] == "`v`") is is_widened


def test_columns_that_come_and_go() -> None:
    found = align(
        columns(id=LongType(), new=StringType()),
        columns(id=LongType(), old=StringType()),
        policy="evolve",
        fixed=[],
    )
    assert (found.drift.added, found.drift.removed) == (("new",), ("old",))
    assert list(found.columns) == ["id", "old", "new"]
    assert found.columns["old"] == "cast(null as string)"
    assert (found.evolves, found.widens) == (True, False)
    assert len(found.drift.messages) == 2


@pytest.mark.parametrize(
    ("policy", "expected"), [("evolve", ["id", "new"]), ("ignore", ["id"]), ("fail", SchemaDriftError)]
)
def test_policies(policy: str, expected: Any) -> None:
    slice_, table = columns(id=LongType(), new=StringType()), columns(id=LongType())
    if expected is SchemaDriftError:
        with pytest.raises(SchemaDriftError):
            align(slice_, table, policy=policy, fixed=[])
    else:
        found = align(slice_, table, policy=policy, fixed=[])
        assert list(found.columns) == expected
        assert found.evolves is (policy == "evolve")


def test_names_match_in_any_case() -> None:
    found = align(columns(Value=StringType()), columns(value=StringType()), policy="evolve", fixed=[])
    assert (dict(found.columns), bool(found.drift)) == ({"value": "`Value`"}, False)


def test_fixed_columns_keep_their_type() -> None:
    found = align(columns(k=LongType()), columns(k=IntegerType()), policy="evolve", fixed=["K"])
    assert not found.widens
    assert "try_cast" in found.columns["k"]


def test_fields_inside_are_matched_by_name() -> None:
    table = columns(s=struct(a=IntegerType(), b=StringType()))
    slice_ = columns(s=struct(c=StringType(), a=LongType()))

    found = align(slice_, table, policy="evolve", fixed=[])

    assert (found.evolves, found.widens) == (True, True)
    assert found.columns["s"] == (
        "if(`s` is null, null, named_struct('a', `s`.`a`, 'b', cast(null as string), 'c', `s`.`c`))"
    )
    ignored = align(slice_, table, policy="ignore", fixed=[])
    assert (ignored.evolves, "'c'" in ignored.columns["s"]) == (False, False)


def test_what_has_no_way_into_the_tables_type_is_refused() -> None:
    with pytest.raises(SchemaDriftError, match="array<string>"):
        align(columns(v=ArrayType(StringType())), columns(v=StringType()), policy="evolve", fixed=[])


def test_a_difference_inside_a_column_is_named_by_its_path() -> None:
    """A warning about one field does not repeat the whole type of its column."""
    table = columns(
        buyer=struct(id=LongType(), home=struct(city=StringType(), zip=StringType())),
        lines=ArrayType(struct(sku=StringType(), qty=LongType())),
    )
    slice_ = columns(
        buyer=struct(id=StringType(), home=struct(City=StringType(), country=StringType())),
        lines=ArrayType(struct(qty=LongType(), sku=StringType(), discount=DoubleType())),
    )
    drift = align(slice_, table, policy="evolve", fixed=()).drift
    assert drift.messages == (
        "column 'buyer.id' is string in the slice, bigint in the table",
        "column 'buyer.home.country' is new",
        "column 'buyer.home.zip' is missing; it is null in what is written",
        "column 'lines.discount' is new",
    )
    assert set(drift.retyped or {}) == {"buyer", "lines"}


def test_a_new_column_that_is_left_out_is_told_as_that() -> None:
    table, inner = columns(id=LongType(), home=struct(city=StringType())), struct(zip=StringType())
    drift = align(columns(id=LongType(), home=inner, w=LongType()), table, policy="ignore", fixed=()).drift
    assert drift.messages == (
        "column 'w' is new, and left out (schema_drift: ignore)",
        "column 'home.zip' is new, and left out (schema_drift: ignore)",
        "column 'home.city' is missing; it is null in what is written",
    )
