"""By which columns rows of a slice are matched with rows of their table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.types import DataType, DateType, IntegerType, LongType, StringType, StructType

from lakewright.lake.table_state import TableState
from lakewright.spec.models.entity_settings import EntitySettings
from lakewright.spec.models.fields import Field, parse_type
from lakewright.strategies.slice_load import SliceLoad

LONG, TEXT = LongType(), StringType()


def matched(slice_: dict[str, DataType], table: dict[str, str], **settings: Any) -> Any:
    """Return the columns for a slice and a table with these columns, and with a key of all of the slice's."""
    frame = StructType()
    for name, kind in slice_.items():
        frame.add(name, kind)
    prepared = SimpleNamespace(identity=tuple(slice_), frame=SimpleNamespace(schema=frame))
    columns = tuple(Field(name=name, type=parse_type(kind)) for name, kind in table.items())
    rest: dict[str, Any] = dict.fromkeys(("lake", "session", "request", "address", "statistics", "alignment"))
    load = SliceLoad(
        **rest,
        entity=cast("Any", SimpleNamespace(settings=EntitySettings(**settings))),
        state=TableState(exists=True, columns=columns),
        prepared=cast("Any", SimpleNamespace(system=SimpleNamespace(key="PK"), **vars(prepared))),
        is_small=False,
    )
    return load.matched


@pytest.mark.parametrize(
    ("slice_", "table", "names"),
    [
        ({"id": LONG}, {"PK": "string", "ID": "bigint"}, ("ID",)),
        (
            {"id": LONG, "day": DateType(), "c": TEXT},
            {"c": "string", "id": "bigint", "day": "date"},
            ("id", "day", "c"),
        ),
    ],
)
def test_rows_are_matched_by_a_business_key_of_the_same_types(
    slice_: dict[str, DataType], table: dict[str, str], names: tuple[str, ...]
) -> None:
    assert matched(slice_, table) == names


@pytest.mark.parametrize(
    ("slice_", "table"),
    [
        ({"id": LONG}, {"PK": "string", "id": "int"}),
        ({"id": IntegerType(), "c": TEXT}, {"id": "int", "c": "varchar(5)"}),
        ({"id": LONG}, {"PK": "string", "number": "bigint"}),
    ],
)
def test_rows_are_matched_by_the_primary_key_where_the_table_keeps_other_values(
    slice_: dict[str, DataType], table: dict[str, str]
) -> None:
    assert matched(slice_, table) == ("PK",)


@pytest.mark.parametrize("settings", [{"null_keys": "allow"}, {"delete_missing": True}])
def test_keys_with_nulls_and_missing_rows_are_matched_by_the_primary_key(settings: dict[str, Any]) -> None:
    assert matched({"id": LONG}, {"id": "bigint"}, **settings) == ("PK",)
