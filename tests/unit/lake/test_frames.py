"""Rows of frames of other libraries as those that Spark takes (D2)."""

from __future__ import annotations

import sys
from datetime import time
from importlib import import_module
from typing import Any

import numpy
import pandas
import polars
import pytest

from lakewright.errors import NotInstalled, UsageError
from lakewright.lake.frames import arrow_table, holds_arrow

pa: Any = import_module("pyarrow")

COLUMNS: dict[str, list[Any]] = {"id": [1, 2], "name": ["a", None], "parts": [[{"of": "x"}], None]}


def test_pandas_rows_keep_an_index_with_a_name_and_lose_one_without() -> None:
    frame = pandas.DataFrame(COLUMNS)
    rows = [{"id": 2, "name": None, "parts": None}]
    assert arrow_table(frame[frame["id"] > 1]).to_pylist() == rows
    assert sorted(arrow_table(frame.set_index("name")).column_names) == ["id", "name", "parts"]


def test_types_that_spark_does_not_know_become_wider_ones() -> None:
    kinds = {"id": polars.UInt32, "name": polars.Categorical}
    table = arrow_table(polars.DataFrame(COLUMNS, schema_overrides=kinds))
    assert [str(field.type) for field in table.schema][:2] == ["int64", "large_string"]
    assert table.to_pylist() == [
        {"id": 1, "name": "a", "parts": [{"of": "x"}]},
        {"id": 2, "name": None, "parts": None},
    ]
    kind = pa.list_(pa.struct([("n", pa.uint64()), ("t", pa.string_view()), ("b", pa.binary_view())]))
    (column,) = arrow_table(pa.table({"x": pa.array([[{"n": 1, "t": "a", "b": b"b"}]], kind)})).schema
    assert str(column.type) == "list<item: struct<n: decimal128(20, 0), t: string, b: binary>>"


def test_names_of_columns_that_are_no_texts_are_refused() -> None:
    """pandas and Arrow warned of them, and wrote a column `'x''y'`."""
    assert arrow_table(pandas.DataFrame([[1, 2]])).column_names == ["0", "1"]
    with pytest.raises(UsageError, match="a column with the name 7, which is no text"):
        arrow_table(pandas.DataFrame([[1, 2, 3]], columns=["id", 7, ("x", "y")]))
    with pytest.raises(UsageError, match="a column with the name None, which is no text"):
        arrow_table(pandas.DataFrame([[1, 2]], columns=["id", None]))


def test_values_of_several_types_and_a_missing_library_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="column id") as refused:
        arrow_table(pandas.DataFrame({"id": [1, "x"]}))
    assert refused.value.remedy == "Give each column a name of its own and values of one type."
    assert not holds_arrow([{"id": 1}])
    frame = polars.DataFrame(COLUMNS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(NotInstalled, match="pyarrow is not installed"):
        arrow_table(frame)


NAIVE, AWARE = pandas.Timestamp("2024-07-01 08:00"), pandas.Timestamp("2024-07-01T08:00+02:00")


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ([NAIVE, AWARE], "t"),
        ([None, AWARE.to_pydatetime(), NAIVE.to_pydatetime()], "t"),
        ([[NAIVE, AWARE]], "t[]"),
        ([{"a": AWARE}, None, {"a": NAIVE}], "t.a"),
        ([{"a": [{"b": AWARE}]}, {"a": [{"b": NAIVE}]}], "t.a[].b"),
        ([numpy.array([AWARE, NAIVE], dtype="object")], "t[]"),
    ],
)
def test_times_with_an_offset_beside_times_without_one_are_refused(values: list[Any], path: str) -> None:
    """pyarrow took the kind of the first one for all, and times were hours off."""
    frame = pandas.DataFrame({"id": range(len(values)), "t": pandas.Series(values, dtype="object")})
    with pytest.raises(UsageError, match="with an offset beside times without one") as refused:
        arrow_table(frame)
    assert f"column '{path}' has times" in refused.value.message


def test_times_of_one_kind_are_taken() -> None:
    rows = [{"a": AWARE, "b": NAIVE, "c": [pandas.NaT, NAIVE]}, {"a": None, "b": NAIVE, "c": None}]
    assert arrow_table(pandas.DataFrame({"t": rows, "u": [AWARE, pandas.NaT]})).num_rows == 2


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (polars.DataFrame({"id": [1], "at": [time(8)]}), "column 'at' has times of day"),
        (polars.DataFrame({"id": [1], "at": [[{"a": time(8)}]]}), "column 'at' has times of day"),
        (
            pandas.DataFrame({"p": pandas.period_range("2024", periods=1, freq="D")}),
            "column 'p' has values of",
        ),
    ],
)
def test_types_that_no_table_has_are_refused_by_their_column(frame: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told) as refused:
        arrow_table(frame)
    assert refused.value.remedy == "Convert it, such as to texts, or drop it."
