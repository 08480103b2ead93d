"""Simple values of JSON are read in types that follow from their columns, not from one slice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)
from tests.projects import make_project

from lakewright.slices.json_columns import KnownColumns
from lakewright.slices.json_values import with_typed_values

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity

WHOLE, FLOAT, TEXT, FLAG = LongType(), DoubleType(), StringType(), BooleanType()


def orders(tmp_path: Path, columns: str) -> Entity:
    text = f"""
connections:
  shop: {{settings: {{bronze_path: b, silver_path: s, bronze_format: json}}}}
entities:
  orders:
    id: 1
    connection: shop
    processtype: merge
    columns: [{{name: id, fieldroles: [businesskey]}}, {columns}]
"""
    (entity,) = make_project(tmp_path, text).entities.values()
    return entity


def struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


@pytest.mark.parametrize(
    ("declared", "inferred", "read_as"),
    [
        ("double", WHOLE, FLOAT),
        ("float", DecimalType(20, 0), FLOAT),
        ("decimal(10,2)", WHOLE, FLOAT),
        ("decimal(15,2)", FLOAT, FLOAT),
        ("decimal(16,2)", FLOAT, DecimalType(38, 18)),
        ("decimal(16,2)", WHOLE, DecimalType(38, 18)),
        ("decimal(38,18)", FLOAT, DecimalType(38, 18)),
        ("decimal(38,2)", FLOAT, DecimalType(38, 2)),
        ("decimal(38,30)", FLOAT, DecimalType(38, 30)),
        ("decimal(10,0)", FLOAT, DecimalType(38, 18)),
        ("decimal(20,0)", WHOLE, WHOLE),
        ("int", FLOAT, DecimalType(38, 18)),
        ("long", WHOLE, WHOLE),
        ("string", FLOAT, TEXT),
        ("varchar(8)", WHOLE, TEXT),
        ("string", FLAG, TEXT),
        ("string", struct(x=WHOLE), struct(x=WHOLE)),
        ("boolean", FLAG, FLAG),
        ("date", TEXT, TEXT),
        ("timestamp", WHOLE, WHOLE),
        ("array<decimal(20,4)>", ArrayType(FLOAT), ArrayType(DecimalType(38, 18))),
        ("struct<x: double, y: string>", struct(X=WHOLE, z=WHOLE), struct(X=FLOAT, z=WHOLE)),
    ],
)
def test_the_declared_type_decides(
    tmp_path: Path, declared: str, inferred: DataType, read_as: DataType
) -> None:
    entity = orders(tmp_path, f'{{name: price, datatype: "{declared}"}}')
    assert with_typed_values(struct(id=WHOLE, Price=inferred), KnownColumns(), entity) == struct(
        id=WHOLE, Price=read_as
    )
    of_former_version = KnownColumns({"price": FLOAT}, are_typed=False)
    assert with_typed_values(struct(Price=inferred), of_former_version, entity) == struct(Price=inferred)


@pytest.mark.parametrize(
    ("inferred", "of_table", "read_as"),
    [
        (WHOLE, FLOAT, FLOAT),
        (WHOLE, TEXT, TEXT),
        (ArrayType(struct(q=WHOLE)), ArrayType(struct(q=FLOAT)), ArrayType(struct(q=FLOAT))),
        # The column's type may change, by the entity's `schema_drift`.
        (FLOAT, WHOLE, FLOAT),
        (FLOAT, DecimalType(20, 0), FLOAT),
    ],
)
def test_the_tables_type_decides_for_columns_without_a_declared_one(
    tmp_path: Path, inferred: DataType, of_table: DataType, read_as: DataType
) -> None:
    entity = orders(tmp_path, "{name: price, newname: cost}")
    known = KnownColumns({"cost": of_table})
    assert with_typed_values(struct(price=inferred), known, entity) == struct(price=read_as)


def test_the_field_of_a_column_has_the_type_that_is_declared_for_it(tmp_path: Path) -> None:
    entity = orders(tmp_path, '{name: total.net, newname: net, datatype: "decimal(20,4)"}')
    inferred = struct(total=struct(Net=FLOAT, tax=FLOAT))
    read_as = struct(total=struct(Net=DecimalType(38, 18), tax=FLOAT))
    assert with_typed_values(inferred, KnownColumns(), entity) == read_as


def test_the_type_of_a_calculated_column_is_not_that_of_the_source(tmp_path: Path) -> None:
    entity = orders(
        tmp_path, "{name: size, datatype: string, expression: \"case when size > 9 then 'L' end\"}"
    )
    assert with_typed_values(struct(size=WHOLE), KnownColumns({"size": TEXT}), entity) == struct(size=WHOLE)
