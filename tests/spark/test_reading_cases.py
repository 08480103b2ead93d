"""What files of others did: each kind of input, from its file to the rows of the table.

Each was read as other values, or not at all, and nothing said so. The rules of reading decide what is right.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from tests.spark.strategies.bench import SmallLake, entity, pa, pq

from lakewright.errors import LakewrightError, SchemaDriftError, SliceError
from lakewright.slices.quarantine import quarantine_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.spec.models.entity import Entity

KEY = {"name": "id", "fieldroles": ["businesskey"]}
NOON = datetime(2024, 5, 1, 10, tzinfo=UTC)
MILLIS = 1714557600000
"""`NOON` in milliseconds since 1970."""

HOURS = 121 * 24 + 10.0
"""`NOON` in hours of the clock of the tests."""


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> SmallLake:
    return SmallLake(spark, tmp_path)


def put(lake: SmallLake, things: Entity, files: Mapping[str, Any]) -> None:
    """Write files by their paths in bronze: texts, bytes, data frames of pandas, or columns for Parquet."""
    bronze = Path(things.places(lake.lake.settings).bronze)
    for name, content in files.items():
        file = bronze / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str | bytes):
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        elif isinstance(content, pd.DataFrame):
            content.to_parquet(file)
        else:
            pq.write_table(pa.table(content), file)


def process(lake: SmallLake, things: Entity, files: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Write slices and process them; return how many records each has inserted and changed."""
    put(lake, things, files)
    result = lake.process(things)
    assert result.error is None, result.error
    return [(each.summary.inserted, each.summary.changed) for each in result.slices]


def refused(lake: SmallLake, things: Entity, files: Mapping[str, Any]) -> LakewrightError:
    """Write slices and process them until one fails; return its error."""
    put(lake, things, files)
    error = lake.process(things).error
    assert error is not None
    return error


MISFITS = [
    ("closed", "date", "45352"),
    ("month", "timestamp", "202403"),
    ("month", "timestamp", "10:15"),
    ("size", "double", "12D"),
    ("size", "double", "7f"),
    ("size", "double", "0x1p3"),
    ("flag", "boolean", "2"),
]


def test_texts_that_are_no_dates_times_numbers_or_flags_are_misfits(lake: SmallLake) -> None:
    """Cases 1, 2, 5."""
    types = {name: kind for name, kind, _ in MISFITS}
    columns = [KEY, *({"name": name, "datatype": kind} for name, kind in types.items())]
    things = entity(columns=columns, settings={"format": "csv", "on_bad_rows": "quarantine"})
    lines = [f"id,{','.join(types)}", "0,2024-05-01,2024-05-01T10:00:00Z,1.25e1,1"]
    for number, (column, _, value) in enumerate(MISFITS, 1):
        lines.append(f"{number},{','.join(value if name == column else '' for name in types)}")

    assert process(lake, things, {"s1.csv": "\n".join(lines)}) == [(1, 0)]

    assert lake.rows(things, "id", *types) == [("0", NOON.date(), HOURS, 12.5, True)]
    aside = Path(quarantine_folder(lake.lake, things, "s1.csv"), "rows.json").read_text().splitlines()
    faults = {row["key"]["id"]: row["fault"] for row in map(json.loads, aside)}
    assert faults == {
        str(number): {
            "reason": "not_written_so",
            "column": column,
            "type": kind,
            "value": value,
            "owner": "declared",
        }
        for number, (column, kind, value) in enumerate(MISFITS, 1)
    }
    strict = entity(name="strict", columns=columns, settings={"format": "csv"})
    error = refused(lake, strict, {"s1.csv": "\n".join(lines[:1] + lines[2:])})
    assert isinstance(error, SchemaDriftError)
    assert error.details["fault"] in faults.values()
    assert [row["fault"] for row in error.details["rows"]] == list(faults.values())


def test_a_row_names_all_its_misfits(lake: SmallLake) -> None:
    """Up to ten columns and paths of a row are named, in the error and in the quarantine."""
    inner = {"name": "s", "datatype": "struct<a: int, b: array<struct<c: int, d: date>>>"}
    many = [{"name": f"n{number}", "datatype": "int"} for number in range(12)]
    settings = {"format": "json", "on_bad_rows": "quarantine"}
    good = {"id": 1, "s": {"a": 1, "b": [{"c": 1, "d": None}]}}
    bad = {"id": 2, "s": {"a": "x", "b": [{"c": 2}, {"c": "y", "d": "z\n"}]}, "n0": "v"}
    worse = {"id": 3, **{each["name"]: "w" for each in many}}
    text = "\n".join(map(json.dumps, (good, bad, worse)))
    things = entity(columns=[KEY, inner, *many], settings=settings)

    assert process(lake, things, {"s1.json": text}) == [(1, 0)]

    aside = Path(quarantine_folder(lake.lake, things, "s1.json"), "rows.json").read_text().splitlines()
    two, three = ([row["fault"], *row["further"]] for row in map(json.loads, aside))
    found = [(each["column"], each["type"], each["value"], each["reason"]) for each in two]
    assert found == [
        ("n0", "int", "v", "not_written_so"),
        ("s.a", "int", "x", "not_written_so"),
        ("s.b.c", "int", "y", "not_written_so"),
        ("s.b.d", "date", "z\n", "not_written_so"),
    ]
    assert [each["column"] for each in three] == sorted(each["name"] for each in many)[:10]
    strict = entity(name="strict", columns=[KEY, inner, *many], settings={"format": "json"})
    error = refused(lake, strict, {"s1.json": text})
    assert "column 'n0': the value 'v' doesn't fit the type int, in id=2 (also column 's.a': " in str(error)
    assert "doesn't fit the type date); further rows: id=3: column 'n0': " in str(error)


def test_numbers_are_times_only_in_a_declared_unit(lake: SmallLake) -> None:
    """Case 3."""
    column = {"name": "ts", "datatype": "timestamp"}
    text = f'{{"id": "1", "ts": {MILLIS}}}\n'
    things = entity(columns=[KEY, column], settings={"format": "json"})
    error = refused(lake, things, {"s1.json": text})
    assert isinstance(error, SchemaDriftError)
    assert error.details["fault"] == {
        "reason": "no_unit",
        "column": "ts",
        "type": "timestamp",
        "value": str(MILLIS),
        "owner": "declared",
    }
    assert "`unit: ms`" in str(error.remedy)
    told = entity(name="told", columns=[KEY, {**column, "unit": "ms"}], settings={"format": "json"})
    assert process(lake, told, {"s1.json": text}) == [(1, 0)]
    assert lake.rows(told, "id", "ts") == [("1", HOURS)]


@pytest.mark.parametrize("is_number_first", [True, False])
def test_a_column_is_not_of_numbers_on_one_day_and_of_times_on_another(
    lake: SmallLake, is_number_first: bool
) -> None:
    """Case 4."""
    days = [pa.array([MILLIS], pa.int64()), pa.array([NOON], pa.timestamp("ms", "UTC"))]
    one, other = days if is_number_first else days[::-1]
    things = entity()
    assert process(lake, things, {"s1": {"id": [1], "at": one}}) == [(1, 0)]
    error = refused(lake, things, {"s2": {"id": [2], "at": other}})
    assert isinstance(error, SchemaDriftError)
    assert error.details["column"] == "at"
    assert len(lake.rows(things)) == 1


@pytest.mark.nightly  # test_reading_places.py reads them
def test_values_of_folders_are_their_texts(lake: SmallLake) -> None:
    """Case 6."""
    declared = [{"name": "line", "datatype": "string"}, {"name": "lot", "datatype": "string"}]
    things = entity(columns=[KEY, *declared], settings={"format": "csv"})
    codes = [("007", "12D"), ("A10", "1E3")]
    files = {
        f"s{number}/plant={plant}/batch={batch}/line={plant}/lot={batch}/x.csv": f"id\n{number}\n"
        for number, (plant, batch) in enumerate(codes)
    }
    assert process(lake, things, files) == [(1, 0), (1, 0)]
    assert lake.rows(things, "plant", "batch", "line", "lot") == [code * 2 for code in codes]


def test_files_in_folders_of_a_slice_are_read(lake: SmallLake) -> None:
    """Case 7."""
    things = entity(settings={"format": "csv"})
    files = {
        "s1/a.csv": "id,v\n1,a\n",
        "s1/more/b.csv": "id,v\n2,b\n",
        "s2/05/01/orders.csv": "v,id\nc,3\n",
    }
    assert process(lake, things, files) == [(2, 0), (1, 0)]
    assert lake.rows(things, "id", "v") == [("1", "a"), ("2", "b"), ("3", "c")]


def test_values_in_other_types_of_pandas_are_no_versions(lake: SmallLake) -> None:
    """Case 8."""
    things = entity("historic")
    naive = pd.Series([pd.Timestamp("2024-05-01 10:00"), pd.Timestamp("2024-05-02")])
    before = pd.DataFrame({"id": [1, 2], "qty": [5, 7], "at": naive})
    after = pd.DataFrame({"id": [1, 2, 3], "qty": [5, 7, None], "at": [*naive, None]})
    assert [str(each["qty"].dtype) for each in (before, after)] == ["int64", "float64"]
    after["at"] = after["at"].dt.tz_localize("UTC")

    assert process(lake, things, {"s1": before, "s2": after}) == [(2, 0), (1, 0)]

    assert lake.rows(things, "id", "qty", "dlf_IsCurrent") == [(1, 5, True), (2, 7, True), (3, None, True)]


def test_empty_objects_nulls_and_absent_fields_are_the_same(lake: SmallLake) -> None:
    """Case 9."""

    def line(id_: int, meta: str) -> str:
        return f'{{"id": {id_}{meta}}}\n'

    empty = ', "meta": {}, "deep": {"meta": {}, "n": 1}, "list": [{"meta": {}, "n": 1}]'
    absent = ', "deep": {"n": 1}, "list": [{"n": 1}]'
    null = ', "meta": null, "deep": {"n": 1, "meta": null}, "list": [{"meta": null, "n": 1}]'
    filled = ', "meta": {"x": 1}, "deep": {"meta": {"x": 1}, "n": 1}, "list": [{"meta": {"x": 1}}]'
    days = [line(1, empty) + line(2, filled), line(1, empty), line(1, absent), line(1, null)]

    things = entity("historic", settings={"format": "json"})
    assert process(lake, things, {"s0.json": days[0], "s1.json": days[2]}) == [(2, 0), (0, 0)]

    first = entity("historic", name="first", settings={"format": "json"})
    files = {f"s{number}.json": text for number, text in enumerate([line(1, ', "meta": {}'), *days])}
    changes = process(lake, first, files)
    # The second slice gives record 1 its fields `deep` and `list`.
    assert changes == [(1, 0), (1, 1), (0, 0), (0, 0), (0, 0)]
    found = lake.table(first).where("dlf_IsCurrent and id = 2").selectExpr("to_json(meta)").collect()
    assert [row[0] for row in found] == ['{"x":1}']


@pytest.mark.nightly  # test_reading_places.py refuses it
def test_the_name_of_folders_of_null_is_no_value_of_a_partition(lake: SmallLake) -> None:
    """Case 10."""
    columns = [KEY, {"name": "region", "fieldroles": ["partition"]}]
    things = entity(columns=columns)
    assert process(lake, things, {"s1": {"id": [1], "region": ["north"]}}) == [(1, 0)]
    error = refused(lake, things, {"s2": {"id": [2], "region": ["__HIVE_DEFAULT_PARTITION__"]}})
    assert isinstance(error, SchemaDriftError)
    assert "region" in error.message
    assert lake.rows(things, "id", "region") == [(1, "north")]


@pytest.mark.nightly  # test_reading_parquet.py reads and refuses such parts
def test_parts_of_other_types_are_rows_in_a_wider_one_or_an_error(lake: SmallLake) -> None:
    """Case 11."""
    things = entity()
    of_void, of_text = (pa.struct([("a", pa.int64()), ("n", kind)]) for kind in (pa.null(), pa.string()))
    one = {
        "id": pa.array([1], pa.int64()),
        "note": pa.nulls(1),
        "at": pa.array([NOON], pa.timestamp("ns", "UTC")),
        "part": pa.array([{"a": 1, "n": None}], of_void),
        "n": pa.array([5], pa.int64()),
        "price": pa.array([Decimal("1.25")], pa.decimal128(10, 2)),
    }
    other = {
        "id": pa.array([2], pa.int64()),
        "note": ["text"],
        "at": pa.array([NOON], pa.timestamp("us", "UTC")),
        "part": pa.array([{"a": 2, "n": "x"}], of_text),
        "n": pa.array([0.5], pa.float64()),
        "price": pa.array([Decimal("1.2345")], pa.decimal128(14, 4)),
    }
    assert process(lake, things, {"s1/p1": one, "s1/p2": other}) == [(2, 0)]
    assert lake.rows(things, "id", "note", "at", "part", "n", "price") == [
        (1, None, HOURS, {"a": 1, "n": None}, 5.0, Decimal("1.2500")),
        (2, "text", HOURS, {"a": 2, "n": "x"}, 0.5, Decimal("1.2345")),
    ]
    wrong = entity(name="wrong")
    error = refused(
        lake, wrong, {"s1/p1": {"id": [1], "at": [MILLIS]}, "s1/p2": {"id": [2], "at": one["at"]}}
    )
    assert isinstance(error, SchemaDriftError)
    assert (error.details["column"], error.details["types"]) == ("at", ["bigint", "timestamp"])
    assert "p1" in error.message
    assert "p2" in error.message


@pytest.mark.nightly  # test_reading_parquet.py reads and refuses such types
def test_types_that_spark_lacks_are_texts_or_refused_by_name(lake: SmallLake) -> None:
    """Case 12."""
    things = entity()
    clock = pa.array([time(10, 15), time(23, 59, 59, 1)], pa.time64("us"))
    assert process(lake, things, {"s1": {"id": [1, 2], "at": clock}}) == [(2, 0)]
    assert lake.rows(things, "id", "at") == [(1, "10:15:00"), (2, "23:59:59.000001")]
    for name, kind, value in (
        ("decimal(50,2)", pa.decimal256(50, 2), Decimal("1.25")),
        ("float16", pa.float16(), 1.5),
    ):
        homeless = entity(name=f"of_{kind.bit_width}")
        error = refused(lake, homeless, {"s1": {"id": [1], "v": pa.array([value], kind)}})
        assert isinstance(error, SchemaDriftError)
        assert (error.details["column"], error.details["type"]) == ("v", name)
        assert error.remedy


@pytest.mark.nightly  # test_reading_places.py reads and refuses them
@pytest.mark.parametrize("encoding", ["UTF-8", "ISO-8859-1"])
def test_compressed_files_are_read_or_named_as_what_they_are(lake: SmallLake, encoding: str) -> None:
    """Case 13."""
    csv, lines = b"id,v\n1,a\n", b'{"id": "1", "v": "a"}\n'
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("s1.csv", csv)
    wrong = {
        ("csv", "s1.csv"): (gzip.compress(csv), "s1.csv.gz"),
        ("json", "s1.json"): (gzip.compress(lines), "s1.json.gz"),
        ("csv", "s1.csv.zip"): (archive.getvalue(), "instead of the archive"),
    }
    for (kind, name), (content, remedy) in wrong.items():
        things = entity(
            name=name.replace(".", "_"), settings={"format": {"kind": kind, "encoding": encoding}}
        )
        error = refused(lake, things, {name: content})
        assert isinstance(error, SliceError)
        assert remedy in str(error.remedy)
        assert "encoding" not in str(error.remedy)
        lake.put_aside()
    things = entity(name="upper", settings={"format": {"kind": "csv", "encoding": encoding}})
    assert process(lake, things, {"S1.CSV.GZ": gzip.compress(csv)}) == [(1, 0)]
    assert lake.rows(things, "id", "v") == [("1", "a")]


@pytest.mark.nightly  # test_reading_csv.py shows it
def test_what_cannot_be_seen_in_a_header_is_shown(lake: SmallLake) -> None:
    """Case 14."""
    for name, header, shown in (
        ("no_break", "id\u00a0", "'id\\u00a0'"),
        ("zero_width", "\u200bid", "'\\u200bid'"),
        ("space", " id", "' id'"),
    ):
        things = entity(name=name, settings={"format": {"kind": "csv", "trim_names": False}})
        error = refused(lake, things, {"s1.csv": f"{header},v\n1,a\n"})
        assert isinstance(error, SchemaDriftError)
        assert f"{shown} differs from 'id'" in error.message
    trimmed = entity(name="trimmed", settings={"format": "csv"})
    assert process(lake, trimmed, {"s1.csv": " id ,v\n1,a\n"}) == [(1, 0)]
    composed, decomposed = "Gr\u00f6\u00dfe", "Gro\u0308\u00dfe"
    for number, (declared, found) in enumerate([(composed, decomposed), (decomposed, composed)]):
        things = entity(name=f"form{number}", columns=[KEY, {"name": declared}], settings={"format": "csv"})
        error = refused(lake, things, {"s1.csv": f"id,{found}\n1,a\n"})
        assert "Unicode form" in error.message


@pytest.mark.nightly  # test_reading_parquet.py reads such ids
def test_ids_as_doubles_are_the_texts_of_whole_numbers(lake: SmallLake) -> None:
    """Case 15."""
    ids: list[Any] = [pa.array([12345678], pa.int64()), ["12345678"], pa.array([12345678.0], pa.float64())]
    declared = entity(name="declared", columns=[{**KEY, "datatype": "string"}])
    files = [{"id": values, "v": ["a"]} for values in ids]
    assert process(lake, declared, dict(zip("ab", files[::2], strict=True))) == [(1, 0), (0, 0)]
    assert lake.rows(declared, "id") == [("12345678",)]
    found = entity(name="found")
    assert process(lake, found, dict(zip("ab", files[1:], strict=True))) == [(1, 0), (0, 0)]
    assert lake.rows(found, "id") == [("12345678",)]
