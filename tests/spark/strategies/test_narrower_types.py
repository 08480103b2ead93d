"""What becomes of values in a column whose declared type is narrower than that of its table."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity, pa

from lakewright.errors import SchemaDriftError
from lakewright.spec.models.entity import Entity

ID = {"name": "id", "datatype": "long", "fieldroles": ["businesskey"]}
SCHEMA = [
    ("id", pa.int64()),
    ("price", pa.decimal128(8, 2)),
    ("at", pa.timestamp("us", tz="UTC")),
    ("code", pa.string()),
    ("share", pa.float64()),
]


def declared(**types: str) -> Entity:
    return entity(columns=[ID, *({"name": name, "datatype": kind} for name, kind in types.items())])


def row(number: int, **changed: Any) -> dict[str, Any]:
    at = datetime(2024, 1, number, 10, 30, tzinfo=UTC)
    return {"id": number, "price": Decimal("1.25"), "at": at, "code": "007", "share": 0.1, **changed}


@pytest.mark.nightly
def test_the_table_keeps_its_types_and_new_values_are_cast_to_the_declared_ones_first(
    lake: SmallLake,
) -> None:
    wide, narrow = declared(), declared(price="decimal(8,1)", at="date", code="long", share="float")
    lake.load(wide, "s1", [row(1)], SCHEMA)
    assert lake.warnings == []
    before = [field.dataType.simpleString() for field in lake.table(wide).schema.fields]
    lake.load(narrow, "s2", [row(2)], SCHEMA)

    said = [text.partition(": column '")[2].partition(" is declared")[0] for text in lake.warnings]
    assert said[:4] == ["price'", "at'", "code'", "share'"]
    assert "values of new slices lose their time of day" in lake.warnings[1]
    assert [field.dataType.simpleString() for field in lake.table(wide).schema.fields] == before
    found = lake.table(wide).selectExpr("price", "cast(at as string)", "code", "share").orderBy("id")
    assert [tuple(each) for each in found.collect()] == [
        (Decimal("1.25"), "2024-01-01 10:30:00", "007", 0.1),
        (Decimal("1.30"), "2024-01-02 00:00:00", "7", pytest.approx(0.1, abs=1e-8)),
    ]
    assert found.collect()[1]["share"] != 0.1
    for types, misfit in (({"price": "integer"}, "1.25"), ({"code": "long"}, "x")):
        things = declared(**types)
        error = lake.fail(things, f"t{misfit}", [row(3, code="x")], SCHEMA)
        assert isinstance(error, SchemaDriftError)
        assert f"the value '{misfit}' doesn't fit the type" in error.message
        lake.put_aside()
