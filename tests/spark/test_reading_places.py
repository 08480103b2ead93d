"""Where values come from: files at any depth of a slice's folder, and the folders' names."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.strategies.bench import SmallLake, entity, pa, pq

from lakewright.errors import LakewrightError, SchemaDriftError, SliceError
from lakewright.lake.commit import strict_session
from lakewright.schema.fault import Fault, Reason
from lakewright.slices.discovery import find_slice
from lakewright.slices.reading import read_slice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.spec.models.entity import Entity

KEY = {"name": "id", "fieldroles": ["businesskey"]}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> SmallLake:
    return SmallLake(spark, tmp_path)


def put(lake: SmallLake, things: Entity, files: Mapping[str, Any]) -> None:
    """Write files of slices: bytes, texts, or rows of Parquet, by their paths in bronze."""
    bronze = Path(things.places(lake.lake.settings).bronze)
    for name, content in files.items():
        file = bronze / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str | bytes):
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        else:
            pq.write_table(pa.Table.from_pylist(content), file)


def frame_of(lake: SmallLake, things: Entity, name: str) -> DataFrame:
    slice_ = find_slice(things.places(lake.lake.settings).slices, name, lake.lake)
    assert slice_ is not None
    return read_slice(lake.lake, strict_session(lake.lake), slice_, things)


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


ODD = {
    "a b=1": ("a b", "1"),
    "p=1 2": ("p", "1 2"),
    "p=50%": ("p", "50%"),
    "p=50%25": ("p", "50%"),
    "p=%252F": ("p", "%2F"),
    "p=a+b": ("p", "a+b"),
    "p=a=b": ("p", "a=b"),
    "p=a#b": ("p", "a#b"),
    "p=a?b&c": ("p", "a?b&c"),
    "p=12:30": ("p", "12:30"),
    "p=x%2Fy": ("p", "x/y"),
    "p=é😀": ("p", "é😀"),
    "p=e\u0301": ("p", "e\u0301"),
    "p=[a]{b}*": ("p", "[a]{b}*"),
    "p=a\\b'c\"": ("p", "a\\b'c\""),
    "p=": ("p", ""),
    "p=null": ("p", "null"),
    "p=__HIVE_DEFAULT_PARTITION__": ("p", None),
    "_year=2022": ("_year", "2022"),
    "05": (None, None),
}


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_values_of_folders_are_texts_and_files_at_any_depth_are_read(lake: SmallLake, kind: str) -> None:
    """Cases 6, 7: signs that paths, URIs and SQL take for something else; mixed depths; hidden names."""
    things = entity(name=kind, settings={"format": kind})

    def content(id_: int) -> Any:
        return {"csv": f"id\n{id_}\n", "json": f'{{"id": "{id_}"}}\n', "parquet": [{"id": str(id_)}]}[kind]

    folders = ["", "05/01", *ODD, *(f"more/{each}/05" for each in ODD)]
    files = {f"dt=1 %/{each}/part=1.{kind}": content(id_) for id_, each in enumerate(folders)}
    hidden = dict.fromkeys(("dt=1 %/_h=1." + kind, "dt=1 %/.x/a", "dt=1 %/_SUCCESS"), "no rows")
    put(lake, things, files | hidden)

    frame = frame_of(lake, things, "dt=1 %")
    assert set(frame.columns) == {"id", "a b", "p", "_year"}
    assert {each.dataType.simpleString() for each in frame.schema.fields} == {"string"}
    expected = []
    for id_, each in enumerate(folders):
        name, value = ODD.get(each.removeprefix("more/").removesuffix("/05"), (None, None))
        expected.append((str(id_), *(value if column == name else None for column in ("a b", "p", "_year"))))
    assert rows_of(frame.select("id", "`a b`", "p", "_year")) == sorted(expected, key=repr)


def test_codes_in_folders_stay_what_they_are(lake: SmallLake) -> None:
    """Case 6: 007 was 7, 12D and 1E3 were 12 and 1000."""
    columns = [KEY, {"name": "plant", "datatype": "string"}, {"name": "line", "datatype": "integer"}]
    things = entity(columns=columns, settings={"format": "csv"})
    for number, plant in enumerate(("007", "A10", "12D", "1E3", "007")):
        put(lake, things, {f"s{number}/plant={plant}/line=0{number}/x.csv": f"id\n{number}\n"})
    result = lake.process(things)
    assert result.error is None, result.error
    assert lake.rows(things, "id", "plant", "line") == [
        ("0", "007", 0),
        ("1", "A10", 1),
        ("2", "12D", 2),
        ("3", "1E3", 3),
        ("4", "007", 4),
    ]


def test_a_column_of_files_and_folders_has_one_value(lake: SmallLake) -> None:
    things = entity()
    put(lake, things, {"s1/qty=07/x": [{"id": 1, "qty": 7}], "s2/qty=8/x": [{"id": 1, "qty": 7}]})
    put(lake, things, {"s3/qty=7/x": [{"id": 1, "qty": [7]}]})
    assert rows_of(frame_of(lake, things, "s1")) == [(1, 7)]
    put(lake, things, {"s4/x": [{"id": 1, "qty": 7}], "s4/qty=08/x": [{"id": 2}, {"id": 3, "qty": 8}]})
    assert rows_of(frame_of(lake, things, "s4")) == [(1, 7), (2, 8), (3, 8)]
    with pytest.raises(Exception, match="USER_RAISED") as raised:
        frame_of(lake, things, "s2").collect()
    fault = Fault.raised(str(raised.value))
    assert fault is not None
    assert (fault.reason, fault.column, fault.value) == (Reason.NOT_AS_FOLDER, "qty", "7")
    assert fault.place.endswith("/s2/qty=8/x")
    with pytest.raises(SliceError, match="'qty'"):
        frame_of(lake, things, "s3")


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_parts_without_content_have_no_rows(lake: SmallLake, kind: str) -> None:
    things = entity(name=kind, settings={"format": kind})
    filled: Mapping[str, Any] = {"csv": "id,v\n1,a\n", "json": '{"id": "1", "v": "a"}\n'}
    row = pa.Table.from_pylist([{"id": "1", "v": "a"}])
    bronze = Path(things.places(lake.lake.settings).bronze)
    empty: list[Any] = [b"", b"\xef\xbb\xbf", b"\r\n", b"\n\n"] if kind != "parquet" else [b""]
    if kind == "csv":
        empty += ["id,v\n", gzip.compress(b"id,v\n")]
    names = [f"s1/a{number}{'.gz' if number == 5 else ''}" for number in range(len(empty))]
    put(lake, things, dict(zip(names, empty, strict=True)) | {"s1/b": filled.get(kind, [])})
    if kind == "parquet":
        pq.write_table(row.slice(0, 0), bronze / "s1/a-none")
        pq.write_table(row, bronze / "s1/b")
    assert rows_of(frame_of(lake, things, "s1").select("id", "v")) == [("1", "a")]
    put(lake, things, {"s0/x": b""})
    error = lake.process(things).error
    assert isinstance(error, SliceError)
    assert "0 bytes" in error.message


def test_a_slice_of_text_without_content_has_no_rows(lake: SmallLake) -> None:
    things = entity(name="blank", settings={"format": "csv"})
    put(lake, things, {"s1.csv": "id\n1\n", "s2.csv": "\ufeff", "s3/a": "\n", "s3/b": "\r\n"})
    result = lake.process(things)
    assert result.error is None, result.error
    assert [done.summary.records_in_slice for done in result.slices] == [1, 0, 0]


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_compressed_files_are_read_or_refused_by_what_they_are(lake: SmallLake, kind: str) -> None:
    """Case 13."""
    text = b"id\n1\n" if kind == "csv" else b'{"id": "1"}\n'
    things = entity(name=kind, settings={"format": kind, "encoding": "ISO-8859-1"})
    names = {f"s1.{kind.upper()}.GZ": gzip.compress(text), f"s2.{kind}.bz2": bz2.compress(text)}
    wrong = {f"s3.{kind}": gzip.compress(text), f"s4.{kind}.gz": text, f"s5.{kind}": b"PK\x03\x04" + text}
    put(lake, things, names | wrong)
    for name in names:
        assert rows_of(frame_of(lake, things, name)) == [("1",)]
    for name in wrong:
        with pytest.raises(SliceError) as refused:
            frame_of(lake, things, name)
        assert "encoding" not in str(refused.value.remedy)


def test_the_text_that_folders_of_null_have_is_no_value_of_a_partition(lake: SmallLake) -> None:
    """Case 10."""
    columns = [KEY, {"name": "region", "fieldroles": ["partition"]}]
    things = entity(columns=columns)
    error: LakewrightError = lake.fail(things, "s1", [{"id": 1, "region": "__HIVE_DEFAULT_PARTITION__"}])
    assert isinstance(error, SchemaDriftError)
    assert "region" in error.message
    assert "__HIVE_DEFAULT_PARTITION__" in error.message
    assert not lake.files(things)


def test_many_files_are_listed_once(lake: SmallLake) -> None:
    things = entity(settings={"format": "json"})
    bronze = Path(things.places(lake.lake.settings).bronze)
    for number in range(300):
        file = bronze / "s1" / f"plant=00{number % 40}" / f"{number}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"id": number}) + "\n")
    frame = frame_of(lake, things, "s1")
    assert frame.count() == 300
    assert frame.select("plant").distinct().count() == 40


@pytest.mark.parametrize(
    "strategy",
    [
        "historic",
        *(pytest.param(each, marks=pytest.mark.nightly) for each in ("full", "merge")),
    ],
)
def test_tables_may_be_partitioned_by_the_folders_of_slices(lake: SmallLake, strategy: str) -> None:
    columns = [KEY, {"name": "plant", "fieldroles": ["partition", "businesskey"]}]
    settings = {} if strategy == "full" else {"delete_missing": True, "delete_scope": "full"}
    things = entity(strategy, name=strategy, columns=columns, settings=settings)
    put(lake, things, {"s1/plant=007/x": [{"id": 1, "v": "a"}], "s1/plant=A b/x": [{"id": 1, "v": "b"}]})
    put(lake, things, {"s2/plant=007/x": [{"id": 1, "v": "A"}], "s2/plant=%25/05/x": [{"id": 2, "v": "c"}]})
    for name in ("s1", "s2"):
        result = lake.process(things, name)
        assert result.error is None, result.error
    conditions = {"full": "true", "merge": "not dlf_deleted", "historic": "dlf_IsCurrent and not dlf_deleted"}
    rows = lake.table(things).where(conditions[strategy]).select("id", "plant", "v").collect()
    # A full slice replaces the partitions that it has; the other strategies infer deletes.
    kept = [(1, "A b", "b")] if strategy == "full" else []
    assert sorted(map(tuple, rows)) == sorted([(1, "007", "A"), (2, "%", "c"), *kept])
