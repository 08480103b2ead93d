"""By which columns rows of a slice are matched with rows of their table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.types import (
    CharType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from lakewright.lake.delta_log import TableState
from lakewright.spec.models.entity_settings import EntitySettings
from lakewright.strategies.slice_load import SliceLoad

LONG, TEXT = LongType(), StringType()


def matched(slice_: dict[str, DataType], table: dict[str, DataType], **settings: Any) -> Any:
    """Return the columns for a slice and a table with these columns, and with a key of all of the slice's."""
    system = SimpleNamespace(key="PK")
    frame = SimpleNamespace(schema=schema_of(slice_))
    rest: dict[str, Any] = dict.fromkeys(("lake", "session", "request", "statistics", "alignment"))
    load = SliceLoad(
        **rest,
        entity=cast("Any", SimpleNamespace(settings=EntitySettings(**settings))),
        state=TableState(exists=True),
        prepared=cast("Any", SimpleNamespace(system=system, identity=tuple(slice_), frame=frame)),
        table=schema_of(table),
    )
    return load.matched


def schema_of(columns: dict[str, DataType]) -> StructType:
    """Return columns as Spark gives them; a `char` is a text whose length stands beside it."""
    limits = {
        name: {"__CHAR_VARCHAR_TYPE_STRING": kind.simpleString()} if isinstance(kind, CharType) else None
        for name, kind in columns.items()
    }
    return StructType(
        [StructField(n, TEXT if limits[n] else kind, True, limits[n]) for n, kind in columns.items()]
    )


@pytest.mark.parametrize(
    ("slice_", "table", "names"),
    [
        ({"id": LONG}, {"PK": TEXT, "ID": LONG}, ("ID",)),
        (
            {"id": LONG, "day": DateType(), "c": TEXT},
            {"c": TEXT, "id": LONG, "day": DateType()},
            ("id", "day", "c"),
        ),
    ],
)
def test_rows_are_matched_by_a_business_key_of_the_same_types(
    slice_: dict[str, DataType], table: dict[str, DataType], names: tuple[str, ...]
) -> None:
    assert matched(slice_, table) == names


@pytest.mark.parametrize(
    ("slice_", "table"),
    [
        ({"id": LONG}, {"PK": TEXT, "id": IntegerType()}),
        ({"id": IntegerType(), "c": TEXT}, {"id": IntegerType(), "c": CharType(5)}),
        ({"c": TEXT}, {"c": StringType("UTF8_LCASE")}),
        ({"id": LONG}, {"PK": TEXT, "number": LONG}),
    ],
)
def test_rows_are_matched_by_the_primary_key_where_the_table_keeps_other_values(
    slice_: dict[str, DataType], table: dict[str, DataType]
) -> None:
    assert matched(slice_, table) == ("PK",)


@pytest.mark.parametrize("settings", [{"null_keys": "allow"}, {"delete_missing": True}])
def test_keys_with_nulls_and_missing_rows_are_matched_by_the_primary_key(settings: dict[str, Any]) -> None:
    assert matched({"id": LONG}, {"id": LONG}, **settings) == ("PK",)
