"""Columns of JSON whose values have another shape than those of the table (A12)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
)
from tests.projects import make_project

from lakewright.slices.json_columns import KnownColumns, with_columns_of
from lakewright.slices.json_shapes import with_known_shapes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.spec.models.entity import Entity

ORDERS = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}", bronze_format: json}}
entities:
  orders:
    id: 1
    connection: shop
    processtype: merge
    columns:
      - {name: id, fieldroles: [businesskey]}
      - {name: size, datatype: long}
      - {name: buyer, newname: customer}
    settings: {on_bad_rows: quarantine}
"""

TEXT, NUMBER = StringType(), LongType()
LINE = StructType([StructField("sku", TEXT)])


@pytest.fixture
def orders(tmp_path: Path) -> Entity:
    (entity,) = make_project(tmp_path, ORDERS).entities.values()
    return entity


def struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


@pytest.mark.parametrize(
    ("inferred", "known", "read_as"),
    [
        (TEXT, ArrayType(LINE), ArrayType(LINE)),
        (LINE, NUMBER, NUMBER),
        (NUMBER, LINE, LINE),
        (ArrayType(TEXT), ArrayType(LINE), ArrayType(LINE)),
        (struct(sku=TEXT, tags=TEXT), struct(tags=ArrayType(TEXT)), struct(sku=TEXT, tags=ArrayType(TEXT))),
        # What a text column takes, what a cast decides, and what has no type yet stays as it is.
        (LINE, TEXT, LINE),
        (TEXT, NUMBER, TEXT),
        (TEXT, NullType(), TEXT),
        (ArrayType(LINE), ArrayType(NullType()), ArrayType(LINE)),
        (LINE, MapType(TEXT, TEXT), LINE),
    ],
)
def test_a_column_is_read_with_the_tables_type_if_only_one_of_both_is_nested(
    orders: Entity, inferred: DataType, known: DataType, read_as: DataType
) -> None:
    columns = with_known_shapes(struct(Lines=inferred), KnownColumns({"lines": known}), orders)
    assert columns["Lines"].dataType == read_as


def test_columns_are_found_by_their_names_in_silver_and_declared_types_decide(orders: Entity) -> None:
    inferred = struct(buyer=TEXT, size=LINE, new=TEXT)
    columns = with_known_shapes(inferred, KnownColumns({"customer": LINE, "size": NUMBER}), orders)
    assert columns == struct(buyer=LINE, size=LINE, new=TEXT)


def test_the_next_slices_of_a_fold_must_fit_those_before_them(orders: Entity) -> None:
    """Without a table, the first slice with a value decides the shape, as one by one."""

    def after(known: KnownColumns, **fields: DataType) -> KnownColumns:
        frame = cast("DataFrame", SimpleNamespace(schema=struct(**fields)))
        return with_columns_of(frame, known, orders)

    known = after(KnownColumns(), lines=ArrayType(NullType()), buyer=NullType())
    known = after(known, lines=ArrayType(LINE), buyer=LINE)
    known = after(known, lines=ArrayType(NullType()), buyer=struct(sku=NUMBER))
    assert known.types == {"lines": ArrayType(LINE), "customer": LINE}
