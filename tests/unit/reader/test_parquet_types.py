"""Types of Parquet files' columns, against what pyarrow reads of the same files."""

from __future__ import annotations

import contextlib
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest

from lakewright.lake.parquet_footer import footer_of
from lakewright.reader.parquet_types import (
    Footer,
    Footers,
    _columns,
    homeless,
    read_type,
    true_sql,
    true_type,
)
from lakewright.schema.shape import without_void
from lakewright.schema.types import Array, Decimal, MapOf, Scalar, Struct, StructField, Type

# They bring no types.
pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")

NAMES = {"int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "bool": "boolean"}
NAMES |= {"uint8": "smallint", "uint16": "int", "uint32": "bigint", "halffloat": "float16", "null": "void"}
NAMES |= {"date32[day]": "date", "date64[ms]": "date", "large_string": "string", "large_binary": "binary"}
NAMES |= {"string_view": "string", "binary_view": "binary", "time32[ms]": "time(3)", "time64[us]": "time(6)"}
NAMES |= {"time64[ns]": "time(9)"}


def expected(kind: Any) -> Type:
    """Return the type that pyarrow reads as one of ours."""
    types = pa.types
    if types.is_struct(kind):
        return Struct(tuple(StructField(each.name, expected(each.type)) for each in kind))
    if types.is_map(kind):
        return MapOf(expected(kind.key_type), expected(kind.item_type))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return Array(expected(kind.value_type))
    return expected(kind.value_type) if types.is_dictionary(kind) else expected_leaf(kind)


def expected_leaf(kind: Any) -> Type:
    if pa.types.is_decimal(kind):
        return Decimal(kind.precision, kind.scale)
    if str(kind) == "uint64":
        return Decimal(20, 0)
    name = NAMES.get(str(kind), str(kind))
    if pa.types.is_timestamp(kind):
        name = "timestamp_ntz" if kind.tz is None else "timestamp"
        name = f"{name}(9)" if kind.unit == "ns" else name
    return Scalar("binary" if pa.types.is_fixed_size_binary(kind) else name)


def footer(path: Path) -> Footer:
    content = path.read_bytes()
    return Footers().read(footer_of(str(path), len(content), lambda start, size: content[start:][:size]))


def check(path: Path) -> Footer:
    """Compare the types of a file with those that pyarrow reads."""
    found = footer(path)
    file = pq.ParquetFile(path)
    plain = pq.ParquetWriter  # the schema without the one that pyarrow has written
    assert plain
    schema = (
        pq.read_schema(path) if b"ARROW:schema" not in (file.metadata.metadata or {}) else file.schema_arrow
    )
    assert found.columns == expected(pa.struct(list(schema))), schema
    assert found.rows == file.metadata.num_rows
    return found


SCALARS = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary(), pa.binary(3)),
    *(pa.large_string(), pa.large_binary(), pa.date32(), pa.null(), pa.decimal128(5, 2)),
    *(pa.decimal128(10, 0), pa.decimal128(38, 18), pa.decimal256(50, 2), pa.decimal256(76, 76)),
    *(pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp(unit, tz=zone) for unit in ("ms", "us", "ns") for zone in (None, "UTC")),
    pa.dictionary(pa.int32(), pa.string()),
]


@pytest.mark.parametrize("options", [{}, {"use_compliant_nested_type": False}, {"version": "1.0"}])
def test_types_are_those_that_pyarrow_reads(tmp_path: Path, options: dict[str, Any]) -> None:
    fields = [pa.field(f"c{number}", kind) for number, kind in enumerate(SCALARS)]
    struct = pa.struct([*fields, pa.field("größe `x`.y", pa.list_(pa.struct(fields)))])
    nested = [
        pa.list_(pa.int64()),
        pa.list_(pa.list_(pa.map_(pa.string(), struct))),
        pa.map_(pa.int32(), pa.list_(pa.timestamp("ns"))),
        struct,
        pa.list_(pa.null()),
        pa.large_list(pa.float16()),
        pa.list_(pa.int8(), 3),
    ]
    whole = pa.schema([*fields, *(pa.field(f"n{number}", kind) for number, kind in enumerate(nested))])
    if options.get("version") == "1.0":  # it has no nanoseconds, no floats of two bytes, no 32 bits unsigned
        whole = pa.schema([each for each in whole if not re.search(r"ns|half|uint32", str(each.type))])
    pq.write_table(whole.empty_table(), tmp_path / "x", store_schema=False, **options)
    check(tmp_path / "x")


def test_int96_and_uuid(tmp_path: Path) -> None:
    times = pa.table({"at": pa.array([1], pa.timestamp("us"))})
    pq.write_table(times, tmp_path / "x", use_deprecated_int96_timestamps=True)
    assert footer(tmp_path / "x").columns.fields[0].type == Scalar("timestamp")
    pq.write_table(pa.table({"u": pa.array([b"0" * 16], pa.uuid())}), tmp_path / "y")
    assert footer(tmp_path / "y").columns.fields[0].type == Scalar("uuid")


def test_files_of_other_writers(tmp_path: Path) -> None:
    """polars, DuckDB and pandas write some types in ways of their own."""
    rows = {"n": [None], "s": [{"a": None, "b": [1]}], "c": ["a"], "t": [None], "d": [1.5]}
    frame = pl.DataFrame(rows).with_columns(
        pl.col("c").cast(pl.Categorical), pl.col("t").cast(pl.Time), pl.col("d").cast(pl.Decimal(12, 3))
    )
    frame.write_parquet(tmp_path / "polars")
    assert footer(tmp_path / "polars").columns.ddl == (
        "struct<`n`: void, `s`: struct<`a`: void, `b`: array<bigint>>, `c`: string, `t`: time(9), "
        "`d`: decimal(12,3)>"
    )
    duckdb.sql(
        f"""copy (select uuid() u, interval 1 day i, time '10:15' t, null n, 'a'::enum('a') e, 1::utinyint b,
        1::ubigint q, 1::hugeint h, timestamptz '2024-01-01 00:00:00Z' z, timestamp_ns '2024-01-01' s,
        {{'a': [1::smallint]}} r, map {{'k': 1.5::decimal(18,2)}} m, '{{}}'::json j, 'x'::blob x)
        to '{tmp_path / "duckdb"}' (format parquet)"""
    )
    assert footer(tmp_path / "duckdb").columns.ddl == (
        "struct<`u`: uuid, `i`: interval, `t`: time(6), `n`: void, `e`: string, `b`: smallint, "
        "`q`: decimal(20,0), `h`: double, `z`: timestamp, `s`: timestamp_ntz(9), "
        "`r`: struct<`a`: array<smallint>>, `m`: map<string,decimal(18,2)>, `j`: string, `x`: binary>"
    )
    indexed = pd.DataFrame({"v": [1.5], "at": pd.to_datetime(["2024-01-01"])}, index=[7])
    indexed.to_parquet(tmp_path / "pandas")
    assert [each.name for each in check(tmp_path / "pandas").columns.fields] == [
        "v",
        "at",
        "__index_level_0__",
    ]


def element(name: str, **fields: Any) -> dict[int, Any]:
    numbers = {"physical": 1, "repetition": 3, "children": 5, "converted": 6, "logical": 10}
    return {4: name.encode(), **{numbers[key]: value for key, value in fields.items()}}


BYTES, INT64, REPEATED, LIST, MAP, UTF8 = 6, 2, 2, 3, 1, 0
ROOT = element("root", children=1)


@pytest.mark.parametrize(
    ("elements", "kind"),
    [
        ([element("v", physical=INT64, repetition=REPEATED)], "array<bigint>"),
        (
            [
                element("v", children=1, repetition=REPEATED),
                element("a", physical=BYTES, converted=UTF8, repetition=REPEATED),
            ],
            "array<struct<`a`: array<string>>>",
        ),
        (
            [
                element("v", children=1, converted=LIST),
                element("element", physical=INT64, repetition=REPEATED),
            ],
            "array<bigint>",
        ),
        (
            [
                element("v", children=1, converted=LIST),
                element("array", children=1, repetition=REPEATED),
                element("a", physical=INT64),
            ],
            "array<struct<`a`: bigint>>",
        ),
        (
            [
                element("v", children=1, converted=LIST),
                element("bag", children=1, repetition=REPEATED),
                element("array_element", physical=INT64),
            ],
            "array<bigint>",
        ),
        (
            [
                element("v", children=1, converted=LIST),
                element("v_tuple", children=1, repetition=REPEATED),
                element("a", physical=INT64),
            ],
            "array<struct<`a`: bigint>>",
        ),
        (
            [
                element("v", children=1, converted=MAP + 1),
                element("map", children=2, repetition=REPEATED),
                element("key", physical=BYTES, converted=UTF8),
                element("value", physical=INT64),
            ],
            "map<string,bigint>",
        ),
    ],
)
def test_old_layouts_of_lists_and_maps(elements: list[dict[int, Any]], kind: str) -> None:
    """The Parquet format, "Backward-compatibility rules"."""
    assert _columns([ROOT, *elements]).fields[0].type.ddl == kind


def test_a_column_may_have_the_number_of_children_zero() -> None:
    """Arrow wrote it so until 2017."""
    column = {**element("v", physical=INT64), **element("v", children=0)}
    assert _columns([ROOT, column]).fields[0].type.ddl == "bigint"


def test_every_bit_of_a_footer_may_be_wrong(tmp_path: Path) -> None:
    kind = pa.struct([("a", pa.list_(pa.decimal128(9, 2))), ("t", pa.time64("ns"))])
    pq.write_table(pa.table({"id": [1], "v": pa.array([None], kind)}), tmp_path / "x")
    whole = (tmp_path / "x").read_bytes()
    found = footer_of("x", len(whole), lambda start, size: whole[start:][:size])
    for position in range(len(found)):
        for value in (0x00, 0xFF, found[position] ^ 0x10):
            with contextlib.suppress(ValueError):
                Footers().read(found[:position] + bytes([value]) + found[position + 1 :])


def test_footers_of_the_same_beginning_are_read_once(tmp_path: Path) -> None:
    footers = Footers()
    found = []
    for number, ids in enumerate(([1], [1, 2], ["a"])):
        path = tmp_path / str(number)
        pq.write_table(pa.table({"id": ids}), path)
        content = path.read_bytes()
        found.append(footers.read(footer_of("x", len(content), lambda a, n, c=content: c[a:][:n])))  # type: ignore[misc]
    assert [each.rows for each in found] == [1, 2, 1]
    assert found[0].columns is found[1].columns
    assert [each.columns.fields[0].type.ddl for each in found] == ["bigint", "bigint", "string"]


def test_what_is_read_and_what_it_is_then() -> None:
    times = Scalar("timestamp(9)")
    kind = Struct(
        (
            StructField("a", Array(times)),
            StructField("b", MapOf(Scalar("string"), Scalar("time(6)"))),
            StructField("c", Scalar("void")),
            StructField("d", Array(Struct((StructField("x", Scalar("void")),)))),
        )
    )
    part = without_void(kind)
    assert part is not None
    assert part.ddl == "struct<`a`: array<timestamp(9)>, `b`: map<string,time(6)>>"
    assert read_type(part).ddl == "struct<`a`: array<bigint>, `b`: map<string,bigint>>"
    assert true_type(part).ddl == "struct<`a`: array<timestamp>, `b`: map<string,string>>"
    assert without_void(Array(Scalar("void"))) is None


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (Decimal(38, 2), None),
        (Decimal(39, 2), ("v", "decimal(39,2)")),
        (Array(Scalar("float16")), ("v", "float16")),
        (Struct((StructField("x", MapOf(Scalar("string"), Scalar("interval"))),)), ("v.x", "interval")),
        (Scalar("time(9)"), None),
    ],
)
def test_types_that_no_table_has_are_found(kind: Type, found: tuple[str, str] | None) -> None:
    assert homeless(kind, "v") == found


@pytest.mark.parametrize(("depth", "is_read"), [(100, True), (121, False), (400, False)])
@pytest.mark.parametrize("is_list", [True, False])
def test_columns_of_many_levels_are_read_or_refused(
    tmp_path: Path, depth: int, is_read: bool, is_list: bool
) -> None:
    kind = pa.timestamp("ns")
    for _ in range(depth):
        kind = pa.list_(kind) if is_list else pa.struct([("x", kind)])
    pq.write_table(pa.table({"v": pa.array([None], kind)}), tmp_path / "x")
    if not is_read:
        with pytest.raises(ValueError, match="more than 120 levels"):
            footer(tmp_path / "x")
        return
    found = without_void(footer(tmp_path / "x").columns.fields[0].type)
    assert found is not None
    assert true_type(found) != read_type(found)
    assert true_sql("v", found, "v")
