"""Parquet files whose columns differ, and types that Spark does not read by itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pandas as pd
import pytest
from tests.spark.strategies.bench import SmallLake, entity, pa, pq

from lakewright.errors import LakewrightError, SchemaDriftError
from lakewright.lake.commit import strict_session
from lakewright.slices.discovery import find_slice
from lakewright.slices.reading import read_slice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.spec.models.entity import Entity


# It brings no types.
orc: Any = import_module("pyarrow.orc")


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> SmallLake:
    return SmallLake(spark, tmp_path, {"timezone": "Europe/Berlin"})


def put(lake: SmallLake, things: Entity, parts: Mapping[str, Any], name: str = "s1") -> Path:
    """Write a slice of several parts, each of which is one table."""
    folder = Path(things.places(lake.lake.settings).bronze) / name
    folder.mkdir(parents=True, exist_ok=True)
    for part, table in parts.items():
        pq.write_table(pa.table(table) if isinstance(table, dict) else table, folder / part)
    return folder


def frame_of(lake: SmallLake, things: Entity, name: str = "s1", notes: list[str] | None = None) -> DataFrame:
    slice_ = find_slice(things.places(lake.lake.settings).slices, name, lake.lake)
    assert slice_ is not None
    note = (notes if notes is not None else []).append
    return read_slice(lake.lake, strict_session(lake.lake), slice_, things, note=note)


def column(*values: Any, kind: Any) -> dict[str, Any]:
    return {"v": pa.array(values, kind)}


def values_of(frame: DataFrame, column: str = "v") -> list[Any]:
    return sorted((row[0] for row in frame.selectExpr(column).collect()), key=repr)


NOON = datetime(2024, 5, 1, 12)

MERGED: Sequence[tuple[str, Sequence[dict[str, Any]], str, list[Any]]] = [
    ("ints", [column(1, kind=pa.int32()), column(2**40, kind=pa.int64())], "bigint", [1, 2**40]),
    ("int and double", [column(1, kind=pa.int64()), column(1.5, kind=pa.float64())], "double", [1.0, 1.5]),
    ("float and double", [column(0.1, kind=pa.float32()), column(0.1, kind=pa.float64())], "double", []),
    (
        "decimals",
        [
            column(Decimal("12345678.90"), kind=pa.decimal128(10, 2)),
            column(Decimal("1.2345"), kind=pa.decimal128(14, 4)),
        ],
        "decimal(14,4)",
        [Decimal("1.2345"), Decimal("12345678.9000")],
    ),
    ("null and text", [column(None, kind=pa.null()), column("a", kind=pa.string())], "string", [None, "a"]),
    ("only nulls", [column(None, kind=pa.null()), column(None, kind=pa.null())], "void", [None, None]),
    (
        "naive and aware",
        [column(NOON, kind=pa.timestamp("us")), column(NOON, kind=pa.timestamp("us", "UTC"))],
        "timestamp",
        [],
    ),
    (
        "ns and us",
        [column(NOON, kind=pa.timestamp("ns", "UTC")), column(NOON, kind=pa.timestamp("us", "UTC"))],
        "timestamp",
        [],
    ),
    ("unsigned", [column(2**64 - 1, kind=pa.uint64()), column(1, kind=pa.int64())], "decimal(20,0)", []),
    (
        "text",
        [column("a", kind=pa.string()), column("b", kind=pa.dictionary(pa.int32(), pa.string()))],
        "string",
        ["a", "b"],
    ),
    (
        "structs",
        [
            column(
                {"x": 1, "Y": "a", "n": None},
                kind=pa.struct([("x", pa.int32()), ("Y", pa.string()), ("n", pa.null())]),
            ),
            column(
                {"y": "b", "x": 2**40, "z": [1.5]},
                kind=pa.struct([("y", pa.string()), ("x", pa.int64()), ("z", pa.list_(pa.float64()))]),
            ),
        ],
        "struct<x:bigint,Y:string,z:array<double>>",
        [(1, "a", None), (2**40, "b", [1.5])],
    ),
    (
        "lists",
        [column([1], kind=pa.list_(pa.int32())), column([2**40], kind=pa.list_(pa.int64()))],
        "array<bigint>",
        [[1], [2**40]],
    ),
    (
        "maps",
        [
            column([("k", 1)], kind=pa.map_(pa.string(), pa.int16())),
            column([("k", 2**20)], kind=pa.map_(pa.string(), pa.int32())),
        ],
        "map<string,int>",
        [{"k": 1}, {"k": 2**20}],
    ),
]


def test_parts_with_other_types_are_read_in_the_type_that_holds_all(lake: SmallLake) -> None:
    """Case 11."""
    things = entity()
    names = [f"v{number}" for number in range(len(MERGED))]
    for part in range(2):
        table = {name: tables[part]["v"] for name, (_, tables, _, _) in zip(names, MERGED, strict=True)}
        put(lake, things, {f"p{part}": table})
    frame = frame_of(lake, things)
    rows = frame.selectExpr(*(name for name, case in zip(names, MERGED, strict=True) if case[3])).collect()
    for name, (told, _, kind, values) in zip(names, MERGED, strict=True):
        assert frame.schema[name].dataType.simpleString() == kind, told
        if values:
            assert sorted((row[name] for row in rows), key=repr) == sorted(values, key=repr), told


@pytest.mark.parametrize(("naive_times", "hour"), [("lake", 10), ("utc", 12)])
def test_instants_and_naive_times_meet_in_the_zone_of_naive_ones(
    lake: SmallLake, naive_times: str, hour: int
) -> None:
    """Rules of reading, "Inference, where nothing is declared"; declared ones are read alike."""
    things = entity(settings={"naive_times": naive_times})
    put(
        lake,
        things,
        {"a": column(NOON, kind=pa.timestamp("ns")), "b": column(NOON, kind=pa.timestamp("us", "UTC"))},
    )
    found = values_of(frame_of(lake, things), "unix_micros(v)")
    naive = datetime(2024, 5, 1, hour, tzinfo=UTC)
    assert found == [int(at.timestamp() * 1e6) for at in (naive, NOON.replace(tzinfo=UTC))]


def test_naive_times_that_are_refused_are_no_instants(lake: SmallLake) -> None:
    """Rules of reading, "Inference, where nothing is declared"; declared ones are read alike."""
    typed = [{"name": "id", "fieldroles": ["businesskey"]}, {"name": "v", "datatype": "timestamp"}]
    naive, aware = pa.array([NOON], pa.timestamp("us")), pa.array([NOON], pa.timestamp("us", "UTC"))
    parts = {"a": {"id": [1], "v": naive}, "b": {"id": [2], "v": aware}}
    texts = {"a": {"id": [1, 2], "v": ["2024-05-01T12:00:00Z", "2024-05-01T12:00:00"]}}
    for name, columns, slice_ in (("mixed", typed[:1], parts), ("typed", typed, texts)):
        things = entity(name=name, settings={"naive_times": "refuse"}, columns=columns)
        put(lake, things, slice_)
        error = lake.process(things).error
        assert isinstance(error, SchemaDriftError), error


def test_a_whole_number_that_no_double_is_equal_to_fails_with_its_column(lake: SmallLake) -> None:
    things = entity()
    put(lake, things, {"a": column(2**53 + 1, kind=pa.int64()), "b": column(1.5, kind=pa.float64())})
    with pytest.raises(Exception, match=r"9007199254740993"):
        frame_of(lake, things).collect()


REFUSED: Sequence[tuple[dict[str, Any], dict[str, Any], str, list[str]]] = [
    (
        column(1714557600000, kind=pa.int64()),
        column(NOON, kind=pa.timestamp("ms")),
        "v",
        ["bigint", "timestamp_ntz"],
    ),
    (column("a", kind=pa.string()), column(1, kind=pa.int64()), "v", ["string", "bigint"]),
    (
        column([{"x": date(2024, 5, 1)}], kind=pa.list_(pa.struct([("x", pa.date32())]))),
        column([{"X": True}], kind=pa.list_(pa.struct([("X", pa.bool_())]))),
        "v.x",
        ["date", "boolean"],
    ),
    (
        column(Decimal(1), kind=pa.decimal128(38, 0)),
        column(Decimal(1), kind=pa.decimal128(38, 10)),
        "v",
        ["decimal(38,0)", "decimal(38,10)"],
    ),
]


@pytest.mark.parametrize(("one", "other", "place", "types"), REFUSED)
def test_types_that_no_type_holds_are_refused_with_both_files(
    lake: SmallLake, one: dict[str, Any], other: dict[str, Any], place: str, types: list[str]
) -> None:
    """Cases 4, 11."""
    things = entity()
    put(lake, things, {"p1": one, "p2": other})
    with pytest.raises(SchemaDriftError) as refused:
        frame_of(lake, things)
    error = refused.value
    assert (error.details["column"], error.details["types"]) == (place, types)
    assert "p1" in error.message
    assert "p2" in error.message


@pytest.mark.parametrize(
    ("kind", "value", "name"),
    [
        (pa.float16(), 1.5, "float16"),
        (pa.list_(pa.float16()), [1.5], "float16"),
        (pa.decimal256(50, 2), Decimal("1.5"), "decimal(50,2)"),
    ],
)
def test_types_without_a_home_are_refused_by_name(lake: SmallLake, kind: Any, value: Any, name: str) -> None:
    """Case 12."""
    things = entity()
    error: LakewrightError = lake.fail(
        things, "s1", [{"id": 1, "v": value}], [("id", pa.int64()), ("v", kind)]
    )
    assert isinstance(error, SchemaDriftError)
    assert (error.details["column"], error.details["type"]) == ("v", name)
    assert error.remedy
    assert not lake.files(things)


CLOCK = time(10, 15, 30, 123456)

READ: list[tuple[Any, Any, Any]] = [
    (pa.time64("us"), CLOCK, "10:15:30.123456"),
    (pa.time64("ns"), CLOCK, "10:15:30.123456"),
    (pa.time32("ms"), time(0, 0, 0, 1000), "00:00:00.001000"),
    (pa.time32("s"), time(23, 59, 59), "23:59:59"),
    (pa.list_(pa.struct([("t", pa.time64("us"))])), [{"t": CLOCK}, None], [("10:15:30.123456",), None]),
    (pa.uint64(), 2**64 - 1, Decimal(2**64 - 1)),
    (pa.uint8(), 255, 255),
    (pa.struct([("at", pa.list_(pa.timestamp("ns", "UTC")))]), {"at": [NOON]}, ([NOON],)),
    (pa.map_(pa.string(), pa.timestamp("ns")), [("k", NOON)], {"k": NOON}),
    (pa.binary(2), b"ab", bytearray(b"ab")),
    (pa.struct([("n", pa.null()), ("x", pa.int8())]), {"n": None, "x": 1}, (1,)),
    (pa.list_(pa.null()), [None], None),
]


def test_types_that_spark_lacks_are_read_as_what_they_are(lake: SmallLake) -> None:
    """Case 12: times of day are texts; times in nanoseconds are times, also inside of others."""
    things = entity(name="read")
    columns = {f"v{n}": pa.array([value, None], kind) for n, (kind, value, _) in enumerate(READ)}
    put(lake, things, {"a": columns})
    rows = frame_of(lake, things).collect()
    for number, (kind, _, wanted) in enumerate(READ):
        assert [row[number] for row in rows] == [wanted, None], kind
    things = entity(name="uuid")
    key = UUID("00112233-4455-6677-8899-aabbccddeeff")
    put(lake, things, {"a": {"v": pa.array([key.bytes], pa.uuid())}})
    assert values_of(frame_of(lake, things)) == [str(key)]


def test_nanoseconds_that_no_microsecond_is_equal_to_fail(lake: SmallLake) -> None:
    things = entity()
    kind = pa.list_(pa.struct([("at", pa.timestamp("ns"))]))
    put(lake, things, {"a": {"v": pa.array([[{"at": 1_000_001}]], kind)}})
    with pytest.raises(Exception, match="1000001"):
        frame_of(lake, things).collect()
    clock = entity(name="clock")
    put(lake, clock, {"a": column(pd.Timedelta(1, "ns").value, kind=pa.time64("ns"))})
    assert values_of(frame_of(lake, clock)) == ["00:00:00.000000001"]


def test_files_with_other_columns_in_other_order_keep_all_values(lake: SmallLake) -> None:
    things = entity()
    put(
        lake,
        things,
        {
            "p1": {"id": [1], "a": ["x"]},
            "p2": {"A": ["y"], "id": [2], "b": [True]},
            "p3": {"b": pa.nulls(1), "id": pa.array([3], pa.int32()), "c": [1.5]},
        },
    )
    frame = frame_of(lake, things)
    assert frame.columns == ["id", "a", "b", "c"]
    assert sorted(map(tuple, frame.collect())) == [
        (1, "x", None, None),
        (2, "y", True, None),
        (3, None, None, 1.5),
    ]


def test_a_part_without_rows_decides_no_type(lake: SmallLake) -> None:
    things = entity()
    empty = pa.table({"id": pa.array([], pa.string()), "extra": pa.array([], pa.int64())})
    put(lake, things, {"p0": empty, "p1": {"id": [1]}, "p2": {"id": [2]}})
    frame = frame_of(lake, things)
    assert frame.schema.simpleString() == "struct<id:bigint,extra:bigint>"
    assert sorted(map(tuple, frame.collect())) == [(1, None), (2, None)]
    put(lake, things, {"p0": empty}, "s2")
    assert frame_of(lake, things, "s2").schema.simpleString() == "struct<id:string,extra:bigint>"
    assert frame_of(lake, things, "s2").count() == 0


def test_the_index_of_pandas_is_left_out_and_said(lake: SmallLake) -> None:
    things, notes = entity(), list[str]()
    bronze = Path(things.places(lake.lake.settings).bronze)
    (bronze / "s1").mkdir(parents=True)
    pd.DataFrame({"id": [1, 2]}, index=[7, 9]).to_parquet(bronze / "s1" / "a")
    pd.DataFrame({"id": [3]}, index=["x"]).to_parquet(bronze / "s1" / "b")
    frame = frame_of(lake, things, notes=notes)
    assert frame.columns == ["id"]
    assert values_of(frame, "id") == [1, 2, 3]
    assert ["__index_level_0__" in each for each in notes] == [True]
    declared = entity(columns=[{"name": "id", "fieldroles": ["businesskey"]}, {"name": "__index_level_0__"}])
    (bronze / "s1" / "b").unlink()
    assert frame_of(lake, declared).columns == ["id", "__index_level_0__"]


def test_names_that_differ_by_case_alone_are_refused(lake: SmallLake) -> None:
    things = entity()
    put(lake, things, {"a": pa.table([pa.array([1]), pa.array([2])], names=["id", "ID"])})
    with pytest.raises(SchemaDriftError, match="'id' and 'ID'"):
        frame_of(lake, things)
    kind = pa.list_(pa.struct([("x", pa.int64()), ("X", pa.int64())]))
    put(lake, things, {"a": {"v": pa.array([[]], kind)}}, "s2")
    with pytest.raises(SchemaDriftError, match=r"'v\.x' and 'v\.X'"):
        frame_of(lake, things, "s2")


def test_a_slice_of_nulls_alone_has_rows(lake: SmallLake) -> None:
    things = entity()
    put(lake, things, {"a": {"v": pa.nulls(2), "w": pa.nulls(2)}})
    frame = frame_of(lake, things)
    assert frame.schema.simpleString() == "struct<v:void,w:void>"
    assert frame.count() == 2
    put(lake, things, {"b": {"w": [1]}})
    frame = frame_of(lake, things)
    assert frame.schema.simpleString() == "struct<v:void,w:bigint>"
    assert values_of(frame, "w") == [1, None, None]


def test_what_spark_has_written_is_read_as_spark_reads_it(lake: SmallLake, spark: SparkSession) -> None:
    things = entity()
    folder = put(lake, things, {})
    rows = (
        "parse_json('{\"a\": 1}') as v, 1 as id, cast('a' as char(3)) as c, named_struct('x', array(1)) as s"
    )
    spark.sql(f"select {rows}").write.mode("overwrite").parquet(str(folder / "x"))
    spark.sql(f"select {rows}, 2L as more").write.mode("overwrite").parquet(str(folder / "y"))
    frame = frame_of(lake, things)
    assert frame.schema["v"].dataType.simpleString() == "variant"
    found = frame.selectExpr("to_json(v)", "id", "trim(c)", "s.x", "more").collect()
    assert sorted(map(tuple, found), key=repr) == [
        ('{"a":1}', 1, "a", [1], 2),
        ('{"a":1}', 1, "a", [1], None),
    ]


def test_parts_of_other_types_reach_the_table_and_bad_rows_are_put_aside(lake: SmallLake) -> None:
    """Rows of several scans have their file and folder like those of one."""
    columns = [{"name": "id", "fieldroles": ["businesskey"]}, {"name": "v", "datatype": "integer"}]
    things = entity(columns=columns, settings={"on_bad_rows": "quarantine"})
    put(lake, things, {"p1": {"id": pa.array([1], pa.int32()), "v": ["1"]}}, "s1/region=a b")
    put(lake, things, {"p2": {"id": [2, 3], "v": ["x", "3"]}}, "s1/region=c")
    result = lake.process(things)
    assert result.error is None, result.error
    assert lake.rows(things, "id", "v", "region") == [(1, 1, "a b"), (3, 3, "c")]
    aside = Path(things.places(lake.lake.settings).quarantine) / "s1" / "rows.json"
    (row,) = map(json.loads, aside.read_text().splitlines())
    assert row["file"].endswith("/s1/region=c/p2")


def test_a_row_that_does_not_fit_the_type_of_all_parts_is_put_aside(lake: SmallLake) -> None:
    things = entity(settings={"on_bad_rows": "quarantine"})
    put(lake, things, {"p1": {"id": [1, 2], "v": [1, 2**53 + 1]}, "p2": {"id": [3], "v": [0.5]}})
    (done,) = lake.process(things).slices
    assert (done.summary.quarantined, done.summary.inserted) == (1, 2)
    assert lake.rows(things, "id", "v") == [(1, 1.0), (3, 0.5)]
    aside = Path(things.places(lake.lake.settings).quarantine) / "s1" / "rows.json"
    (row,) = map(json.loads, aside.read_text().splitlines())
    assert row["file"].endswith("/s1/p1")
    assert json.loads(row["record"]) == {"id": 2, "v": 2**53 + 1}
    assert row["reason"] == (
        f"column 'v': the value '{2**53 + 1}' doesn't fit the type double of the column's other values: "
        "not without loss"
    )


def test_orc_files_of_other_types_are_read_in_the_type_that_holds_all(lake: SmallLake) -> None:
    things = entity(settings={"format": "orc"})
    folder = put(lake, things, {})
    orc.write_table(pa.table({"id": pa.array([1], pa.int32()), "a": ["x"]}), folder / "p1")
    orc.write_table(pa.table({"id": pa.array([2], pa.int64()), "b": [1.5]}), folder / "p2")
    (folder / "p0").write_bytes(b"")
    frame = frame_of(lake, things)
    assert frame.schema.simpleString() == "struct<id:bigint,a:string,b:double>"
    assert sorted(map(tuple, frame.collect())) == [(1, "x", None), (2, None, 1.5)]
    orc.write_table(pa.table({"id": ["3"]}), folder / "p3")
    with pytest.raises(SchemaDriftError, match=r"'id'.*bigint.*string"):
        frame_of(lake, things)


def test_ids_as_doubles_are_texts_without_a_fraction(lake: SmallLake) -> None:
    """Case 15."""
    columns = [{"name": "id", "fieldroles": ["businesskey"], "datatype": "string"}]
    things = entity(columns=columns)
    put(lake, things, {"a": {"id": pa.array([12345678.0], pa.float64())}}, "s1")
    put(lake, things, {"a": {"id": pa.array([12345678], pa.int64())}}, "s2")
    result = lake.process(things)
    assert result.error is None, result.error
    assert lake.rows(things, "id") == [("12345678",)]


def test_values_that_no_column_holds_are_named(lake: SmallLake) -> None:
    """Whole numbers beyond doubles, dates and times outside of the years 0001 to 9999."""
    parts: list[dict[str, Any]] = [
        {"a": {"id": [1], "v": [2**53 + 1]}, "b": {"id": [2], "v": [1.5]}},
        {"a": {"id": [1], "v": pa.array([5000000], pa.int32()).cast(pa.date32())}},
        {"a": {"id": [1], "v": pa.array([2**62], pa.int64()).cast(pa.timestamp("us"))}},
    ]
    for number, tables in enumerate(parts):
        things = entity(name=f"odd{number}")
        put(lake, things, tables)
        error = lake.process(things).error
        assert isinstance(error, SchemaDriftError)
        assert "column 'v'" in error.message


@pytest.mark.parametrize("is_number_first", [True, False])
def test_numbers_of_one_slice_and_times_of_another_are_refused_by_name(
    lake: SmallLake, is_number_first: bool
) -> None:
    """Case 4, both ways round."""
    things = entity()
    parts = [pa.array([1714557600000], pa.int64()), pa.array([NOON], pa.timestamp("ms", "UTC"))]
    for number, values in enumerate(parts if is_number_first else parts[::-1]):
        put(lake, things, {"a": {"id": [1], "at": values}}, f"s{number}")
    result = lake.process(things)
    assert len(result.slices) == 1
    assert isinstance(result.error, SchemaDriftError)
    assert "'at'" in result.error.message
