"""Slices with wrong bytes end in the rows that a plain reader finds, or in an error that names the file.

Source: the rules of reading, "Safe and fast".
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.mutations import mutated
from tests.reading import local_reading
from tests.spark.strategies.bench import SmallLake, entity, pa, pq
from tests.spark.test_reading_json import check

from lakewright.errors import SchemaDriftError, SliceError
from lakewright.lake.commit import strict_session
from lakewright.lake.paths import FileEntry
from lakewright.reader.files import read_csv
from lakewright.reader.json import read_json
from lakewright.reader.parquet import read_parquet
from lakewright.reader.source import Form, Source
from lakewright.strategies.failures import translate_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EACH = 12
SEEDS = range(25)

pytestmark = pytest.mark.nightly

CSV = '\ufeffid,name,"a ""b"""\r\n1,Zoë,"x, ""y"""\r\n2,"two\r\nlines",\r\n3, z ,€\r\n'
JSON = """\
{"id": 1, "name": "Zo\u00eb \\u00e9", "n": 12.5, "is": true, "deep": {"x": [1, 2], "y": {"z": "a"}}}
{"id": 2, "name": null, "n": -3e5, "list": [{"q": 1}, {"q": 2}], "deep": {}}
{"id": 3, "name": "", "is": false, "list": [], "n": 12345678901234567890}
"""

Frame = Callable[[Source], "DataFrame"]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> SmallLake:
    return SmallLake(spark, tmp_path)


def rows_or_fault(file: Path, content: bytes, read: Frame) -> DataFrame | None:
    """Return the frame of a slice that can be read; None if it ends in an error that names its file."""
    file.write_bytes(content)
    source = Source(
        f"the slice {file.name}", str(file), (FileEntry(file.name, len(content)),), "x", is_folder=False
    )
    try:
        frame = read(source)
        frame.collect()
    except Exception as error:
        told = translate_error(error, entity(), file.name)
        if type(told) not in (SliceError, SchemaDriftError) or file.name not in told.message:
            raise
        return None
    return frame


def plain_records(content: bytes) -> list[dict[str, str]] | None:
    """Return the records that Python's reader finds, None if there are none.

    Raises:
        ValueError: They are no records of one header, or others may see other ones.
    """
    text = content.decode().lstrip("\ufeff")
    if "\r" in text.replace("\r\n", ""):
        raise ValueError("there are carriage returns in values")
    if "\0" in text:
        raise ValueError("Spark loses a NUL in a field that has quotes inside quotes, too")
    try:
        header, *records = [each for each in csv.reader(io.StringIO(text, newline=""), strict=True) if each]
    except csv.Error as error:
        raise ValueError from error
    names = [each.strip(" \t") for each in header]
    if any(len(each) != len(names) for each in records) or len({each.lower() for each in names}) < len(names):
        raise ValueError("the number of fields is wrong")
    return [dict(zip(names, each, strict=True)) for each in records]


def check_csv(lake: SmallLake, file: Path, content: bytes, packed: bytes) -> None:
    form = Form("csv")
    session = strict_session(lake.lake)
    frame = rows_or_fault(file, packed, lambda source: read_csv(local_reading(session, source, form)))
    try:
        plain = plain_records(content)
    except ValueError:
        return
    if frame is None:
        return
    found = [{name: value or "" for name, value in row.asDict().items()} for row in frame.collect()]
    assert sorted(found, key=repr) == sorted(plain or [], key=repr), content


@pytest.mark.parametrize("seed", SEEDS)
def test_csv(lake: SmallLake, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(EACH):
        content = mutated(CSV.encode(), rng)
        check_csv(lake, tmp_path / "wrong.csv", content, content)


@pytest.mark.parametrize("seed", SEEDS)
def test_gzip(lake: SmallLake, tmp_path: Path, seed: int) -> None:
    rng, whole = random.Random(seed), CSV.encode()
    for _ in range(EACH):
        packed = mutated(gzip.compress(whole, mtime=0), rng)
        try:
            content = gzip.decompress(packed)
        except (OSError, EOFError, zlib.error):
            content = whole  # what is read all the same must be what it was
        check_csv(lake, tmp_path / "wrong.csv.gz", content, packed)


@pytest.mark.parametrize("seed", SEEDS)
def test_json(lake: SmallLake, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    session = strict_session(lake.lake)
    for _ in range(EACH):
        content = mutated(JSON.encode(), rng)

        def read(source: Source) -> DataFrame:
            return read_json(local_reading(session, source, Form("json")))

        frame = rows_or_fault(tmp_path / "wrong.json", content, read)
        if frame is None or b"\r" in content or not _is_plain(content):
            continue
        check(frame, "\n".join(filter(None, content.decode().removeprefix("\ufeff").split("\n"))))


def _is_plain(content: bytes) -> bool:
    """Return whether Python's parser takes the lines for objects without names that differ by case alone."""
    names: dict[str, str] = {}

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs) or any(names.setdefault(each.lower(), each) != each for each in found):
            raise ValueError("two fields have the same name")
        return found

    try:
        lines = [line for line in content.decode().removeprefix("\ufeff").split("\n") if line]
        found = [json.loads(line, object_pairs_hook=unique) for line in lines]
    except ValueError:
        return False
    return all(isinstance(each, dict) for each in found)


@pytest.mark.parametrize("seed", SEEDS)
def test_parquet(lake: SmallLake, tmp_path: Path, seed: int) -> None:
    rng, stream = random.Random(seed), io.BytesIO()
    table = pa.table({"id": [1, 2, 3], "name": ["a", None, "a"], "deep": [[{"x": 1.5}], [], None]})
    pq.write_table(table, stream, store_schema=False, write_page_checksum=True)
    whole, file = stream.getvalue(), tmp_path / "wrong.parquet"
    session = strict_session(lake.lake)
    for number in range(EACH):
        footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
        if number % 2:
            content = whole[:4] + mutated(whole[4:footer], rng) + whole[footer:]
        else:
            content = whole[:footer] + mutated(whole[footer:], rng)
        frame = rows_or_fault(
            file, content, lambda source: read_parquet(local_reading(session, source, Form("parquet")))
        )
        try:
            plain = pq.read_table(io.BytesIO(content), page_checksum_verification=True)
        except (pa.ArrowException, OSError, ValueError, OverflowError):
            continue
        if frame is not None and plain.schema.equals(table.schema):
            assert sorted((row.asDict(recursive=True) for row in frame.collect()), key=repr) == sorted(
                plain.to_pylist(), key=repr
            )
