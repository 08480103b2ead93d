"""Expected rows of tests are compared with those of a query by the types of the columns."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from lakewright.checks.sql import difference, row_of
from lakewright.errors import SpecError
from lakewright.spec.models.fields import Field, parse_type


@pytest.mark.parametrize(
    ("kind", "actual", "expected"),
    [
        ("string", "0100", "0100"),
        ("int", "2", "2.0"),
        ("decimal(9,2)", "2.50", "2.5"),
        ("double", "1.0E10", "10000000000"),
        ("boolean", "true", "True"),
        ("boolean", "true", True),
        ("date", "2024-05-01", "2024-05-01"),
        ("timestamp", "2024-05-01 00:00:00", "2024-05-01T00:00:00Z"),
        ("timestamp", "2024-05-01 12:30:00.5", "2024-05-01 12:30:00.500"),
        ("timestamp", "2024-05-01 00:00:00", "2024-05-01"),
        ("timestamp", "2024-05-01 08:00:00", "2024-05-01T10:00:00+02:00"),
        ("timestamp", "2024-04-30 22:30:00.25", "2024-05-01 04:15:00.250+0545"),
        ("timestamp", "2024-05-01 08:00:00", "2024-05-01T08:00"),
        ("timestamp_ntz", "2024-05-01 08:00:00", "2024-05-01T08:00:00"),
        ("timestamp", "+12024-05-01 08:00:00", "+12024-05-01 08:00:00"),
        ("array<timestamp>", ["2024-05-01T08:00:00.000000Z"], ["2024-05-01T10:00:00+02:00"]),
        ("double", "-0.0", "0"),
        ("struct<a: double>", {"a": -0.0}, {"a": "0"}),
        ("array<int>", [1, None], ["1", None]),
        ("array<int>", [1, 2], "[1, 2]"),
        ("struct<a: int, b: string>", {"a": 1, "b": "x"}, {"B": "x", "A": "1.0"}),
        ("struct<a: int, b: string>", {"a": 1, "b": "x"}, ["1", "x"]),
        ("map<string, array<decimal(3,1)>>", {"k": [1], "j": []}, {"j": [], "k": ["1.0"]}),
        ("struct<d: decimal(9,3)>", {"d": Decimal("1.500")}, {"d": "1.5"}),
        ("array<decimal(9,3)>", [Decimal("1.500")], ["1.50"]),
        ("string", None, None),
    ],
)
def test_equal_values(kind: str, actual: Any, expected: Any) -> None:
    assert difference([(actual,)], [(expected,)], [parse_type(kind)]) is None


@pytest.mark.parametrize(
    ("kind", "actual", "expected", "told"),
    [
        ("string", "100", "0100", "unexpected (100); missing (0100)"),
        ("string", "1e2", "100", "unexpected (1e2); missing (100)"),
        ("string", "null", None, "unexpected ('null'); missing (null)"),
        ("string", "", None, "unexpected (''); missing (null)"),
        ("string", "x ", "x", "unexpected ('x '); missing (x)"),
        (
            "timestamp",
            "2024-05-01 10:00:00",
            "2024-05-01T10:00:00+02:00",
            "unexpected (2024-05-01 10:00:00); missing (2024-05-01 08:00:00)",
        ),
        (
            "timestamp",
            "2024-05-01 10:00:00.123456",
            "2024-05-01 10:00:00.1234567",
            "unexpected (2024-05-01 10:00:00.123456); missing (2024-05-01 10:00:00.1234567)",
        ),
        (
            "timestamp_ntz",
            "2024-05-01 08:00:00",
            "2024-05-01T10:00:00+02:00",
            "unexpected (2024-05-01 08:00:00); missing (2024-05-01T10:00:00+02:00)",
        ),
        ("int", "1", "x", "unexpected (1); missing (x)"),
        ("array<int>", [1, 2], ["2", "1"], "unexpected ([1, 2]); missing ([2, 1])"),
        ("struct<a: int>", {"a": 1}, {"b": "1"}, "unexpected ({a: 1}); missing ({a: null, b: 1})"),
    ],
)
def test_other_values_are_told(kind: str, actual: Any, expected: Any, told: str) -> None:
    assert difference([(actual,)], [(expected,)], [parse_type(kind)]) == told


def test_a_row_is_a_list_a_map_or_the_only_value() -> None:
    two = [Field(name=name, type=parse_type("int")) for name in ("id", "n")]
    many = [Field(name="l", type=parse_type("array<int>"))]
    assert row_of(["1", "2"], two, "q") == ("1", "2")
    assert row_of({"N": "2", "id": "1"}, two, "q") == ("1", "2")
    assert row_of(["1", "2"], many, "q") == (["1", "2"],)
    assert row_of([["1", "2"]], many, "q") == (["1", "2"],)
    assert row_of({"l": ["1"]}, many, "q") == (["1"],)
    assert row_of("3", two[:1], "q") == ("3",)
    with pytest.raises(SpecError, match="'m', which is no column of the query"):
        row_of({"id": "1", "m": "2"}, two, "q")
    with pytest.raises(SpecError, match="has 1 value, but the query has 2 columns: id, n"):
        row_of("1", two, "q")
