"""What a column declares about how its values are written: what goes together, and with which types."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from lakewright.schema.rules import Unit, ValueRules
from lakewright.spec.models.column import Column


def column(**fields: Any) -> Column:
    return Column.model_validate({"name": "c", **fields})


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({}, {}),
        ({"datatype": "date"}, {}),
        ({"datatype": "date", "format": "dd.MM.yyyy"}, {"format": "dd.MM.yyyy"}),
        ({"datatype": "timestamp", "format": "dd.MM.yyyy HH:mm"}, {"format": "dd.MM.yyyy HH:mm"}),
        ({"datatype": "timestamp_ntz", "format": "HH:mm d.M.yy"}, {"format": "HH:mm d.M.yy"}),
        ({"datatype": "date", "unit": "excel"}, {"unit": Unit.EXCEL}),
        ({"datatype": "date", "unit": "Days"}, {"unit": Unit.DAYS}),
        *(
            ({"datatype": "timestamp", "unit": unit}, {"unit": Unit(unit)})
            for unit in ("s", "ms", "us", "ns")
        ),
        ({"datatype": "timestamp_ntz", "unit": "ms"}, {"unit": Unit.MILLIS}),
        ({"datatype": "decimal(5,2)", "rounding": "half_up"}, {"rounds": True}),
        ({"datatype": "decimal(5,2)", "rounding": "HALF_UP"}, {"rounds": True}),
        ({"datatype": "boolean", "values": {"J": True, "N": False}}, {"booleans": {"J": True, "N": False}}),
        ({"datatype": "boolean", "values": {"x": True}}, {"booleans": {"x": True}}),
        ({"datatype": "date", "unit": "excel", "fieldroles": ["businesskey"]}, {"unit": Unit.EXCEL}),
    ],
)
def test_what_is_declared_is_how_values_are_converted(fields: dict[str, Any], rules: dict[str, Any]) -> None:
    found = column(**fields).rules("Europe/Berlin")
    assert found == ValueRules("Europe/Berlin", is_bounded=True, **rules)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        *(
            ({"format": "dd.MM.yyyy", **kind}, "'c' needs the datatype date or timestamp for `format`")
            for kind in ({}, {"datatype": "string"}, {"datatype": "integer"}, {"datatype": "array<date>"})
        ),
        *(
            ({"unit": "ms", **kind}, "'c' needs the datatype timestamp for this `unit`")
            for kind in ({}, {"datatype": "date"}, {"datatype": "long"})
        ),
        *(
            ({"unit": unit, **kind}, "'c' needs the datatype date for this `unit`")
            for unit in ("days", "excel")
            for kind in ({}, {"datatype": "timestamp"}, {"datatype": "integer"})
        ),
        ({"datatype": "date", "format": "d.M.yy", "unit": "days"}, "'c' needs either a `format` or a `unit`"),
        *(
            ({"rounding": "half_up", **kind}, "'c' needs a decimal as datatype for `rounding`")
            for kind in ({}, {"datatype": "double"}, {"datatype": "integer"})
        ),
        *(
            ({"values": {"J": True}, **kind}, "'c' needs the datatype boolean for `values`")
            for kind in ({}, {"datatype": "string"})
        ),
        (
            {"newname": "day", "unit": "ms", "datatype": "date"},
            "the column 'day' needs the datatype timestamp",
        ),
        ({"datatype": "date", "format": ""}, "format"),
        ({"datatype": "timestamp", "unit": "minutes"}, "unit"),
        ({"datatype": "decimal(5,2)", "rounding": "down"}, "rounding"),
        ({"datatype": "boolean", "values": {}}, "values"),
        ({"datatype": "boolean", "values": {"J": "perhaps"}}, "values"),
    ],
)
def test_what_does_not_go_with_the_type_is_refused(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(told)):
        column(**fields)


def test_a_column_of_the_source_may_be_left_out() -> None:
    found = column(omit=True)
    assert (found.omit, found.type) == (True, None)
    assert not column().omit


@pytest.mark.parametrize(
    "fields",
    [
        {"datatype": "string"},
        {"fieldroles": ["businesskey"]},
        {"fieldroles": ["partition"]},
        {"expression": "a + 1"},
        {"datatype": "date", "format": "d.M.yy"},
    ],
)
def test_a_column_that_is_left_out_has_nothing_else(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="'c' is left out"):
        column(omit=True, **fields)
