"""Files with wrong bytes have an answer, that of a plain reader, or an error of ours; nothing else.

Source: the rules of reading, "Safe and fast".
"""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import io
import random
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.mutations import mutated

from lakewright.errors import LakewrightError
from lakewright.lake.file_probe import compression_of
from lakewright.lake.files import LocalFiles
from lakewright.lake.paths import FileEntry
from lakewright.reader.avro import schema_text
from lakewright.reader.files import check_compression, with_content
from lakewright.reader.lines import scan
from lakewright.reader.parquet import read_footers
from lakewright.reader.source import FileFault, Form, Source

# They bring no types.
pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")

PACKED: Mapping[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}

EACH = 150
SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(3, 200))]

CSV = '\ufeffid,name,"a ""b"""\r\n1,Zoë,"x, ""y"""\r\n2,"two\r\nlines",\r\n3, z ,\u20ac\r\n'


def source_of(file: Path, kind: str) -> Source:
    place = (FileEntry(file.name, file.stat().st_size),)
    return Source(f"the slice {file.name}", str(file), place, kind, is_folder=False)


def parquet() -> bytes:
    stream = io.BytesIO()
    table = pa.table(
        {
            "id": [1, 2],
            "näme": ["a", None],
            "at": pa.array([datetime(2024, 5, 1, tzinfo=UTC), None], pa.timestamp("ns", "UTC")),
            "price": pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)),
            "deep": [[{"x": 1.5, "y": [True]}], None],
            "pairs": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())),
            "clock": pa.array([1, None], pa.time64("us")),
            "none": pa.nulls(2),
        }
    )
    pq.write_table(table, stream, store_schema=False)
    return stream.getvalue()


def plain_metadata(content: bytes) -> tuple[list[str], int] | None:
    """Return the names of the columns and the number of rows as PyArrow finds them; None if it does not."""
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        return list(file.schema_arrow.names), file.metadata.num_rows
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        return None


@pytest.mark.parametrize("seed", SEEDS)
def test_a_footer_says_what_others_find_or_is_damaged(tmp_path: Path, seed: int) -> None:
    rng, whole, file = random.Random(seed), parquet(), tmp_path / "s1.parquet"
    length = int.from_bytes(whole[-8:-4], "little")
    start = len(whole) - 8 - length
    for _ in range(EACH):
        footer = mutated(whole[start:-8], rng)
        size = len(footer) if rng.random() < 0.9 else rng.choice((0, length, 1 << 30, rng.randrange(1 << 16)))
        content = whole[:start] + footer + size.to_bytes(4, "little") + whole[-4:]
        file.write_bytes(content)
        found, fault = [], ""
        try:
            found = read_footers(LocalFiles(), source_of(file, "parquet")) or []
        except LakewrightError as error:
            fault = error.message
        assert bool(found) != (str(file) in fault)
        if not found:
            continue
        ((_, read),) = found
        plain = plain_metadata(content)
        if plain is not None:
            assert ([each.name for each in read.columns.fields], read.rows) == plain


def plain_records(content: bytes) -> list[list[str]] | None:
    """Return the records as Python's reader finds them; None if it can't, or takes other line ends."""
    try:
        text = content.decode().lstrip("\ufeff")
        if "\r" in text.replace("\r\n", ""):
            return None
        return [each for each in csv.reader(io.StringIO(text, newline=""), strict=True) if each]
    except (csv.Error, UnicodeDecodeError):
        return None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("suffix", PACKED)
def test_lines_are_those_of_pythons_reader_or_in_error(tmp_path: Path, seed: int, suffix: str) -> None:
    rng, file = random.Random(seed), tmp_path / f"s1.csv{suffix}"
    pack = PACKED[suffix]
    for number in range(EACH):
        content = CSV.encode()
        is_inside = not suffix or number % 2 == 0
        content = mutated(content, rng) if is_inside else content
        packed = pack(content)
        file.write_bytes(packed if is_inside else mutated(packed, rng))
        found, fault = None, str(file)
        try:
            found = scan(file, Form("csv"))
        except FileFault as error:
            fault = error.path
        assert fault == str(file)
        plain = plain_records(content) if is_inside else None
        if found is None or not plain:
            continue
        assert list(found.first) == plain[0]
        assert found.is_alone == (len(plain) == 1)
        assert found.has_breaks or not any("\n" in value for record in plain for value in record)


def packed_files() -> dict[str, bytes]:
    text, zipped, tarred = CSV.encode(), io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as opened:
        opened.writestr("s1.csv", text)
    with tarfile.open(fileobj=tarred, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("s1.csv"), io.BytesIO())
    return {
        "gzip": gzip.compress(text, mtime=0),
        "bzip2": bz2.compress(text),
        "zip": zipped.getvalue(),
        "tar": tarred.getvalue(),
        "plain": text,
        "empty": gzip.compress(b"\n", mtime=0),
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_compressed_is_named_or_left_to_its_reader(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    for kind, content in packed_files().items():
        assert compression_of(content) == {"plain": None, "empty": "gzip"}.get(kind, kind)
        for _ in range(EACH // 5):
            file = (
                tmp_path / f"s1.csv{rng.choice(('', '.gz', '.bz2', '.zst', '.deflate', '.snappy', '.lz4'))}"
            )
            file.write_bytes(mutated(content, rng))
            source = source_of(file, "csv")
            firsts = source.first_bytes(LocalFiles().begin)
            fault = str(file)
            try:
                check_compression(source, firsts)
            except LakewrightError as error:
                fault = error.message
            assert str(file) in fault
            assert len(with_content(source, firsts).files) <= 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_header_of_avro_is_found_or_damaged(seed: int) -> None:
    schema = b'{"type": "record", "name": "r", "fields": []}'
    entry = b"\x16avro.schema" + bytes([len(schema) << 1 & 0x7F | 0x80, len(schema) >> 6]) + schema
    whole = b"Obj\x01\x02" + entry + b"\x00" + b"s" * 16
    assert schema_text(whole) == schema
    rng = random.Random(seed)
    for _ in range(EACH):
        with contextlib.suppress(IndexError, ValueError):
            schema_text(mutated(whole, rng))


def test_numbers_that_never_end_are_damage(tmp_path: Path) -> None:
    """Each byte of them would make a longer number: minutes for a megabyte."""
    endless = b"\xff" * (1 << 22)
    with pytest.raises(ValueError, match="number"):
        schema_text(b"Obj\x01" + endless)
    file = tmp_path / "s1.parquet"
    file.write_bytes(b"PAR1\x25" + endless + (len(endless) + 1).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(LakewrightError, match=r"s1\.parquet"):
        read_footers(LocalFiles(), source_of(file, "parquet"))
