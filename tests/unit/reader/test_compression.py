"""Text files that are not what their names say."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib

import pytest
from tests.silver import pa

from lakewright.errors import SliceError
from lakewright.lake.file_probe import compression_of
from lakewright.lake.paths import FileEntry
from lakewright.manifest.payload import MAY_SKIP
from lakewright.reader.files import check_compression, with_content
from lakewright.reader.source import Source

TEXT = b"id,name\n1,a\n"


def framed(kind: str) -> bytes:
    buffer = pa.BufferOutputStream()
    with pa.CompressedOutputStream(buffer, kind) as stream:
        stream.write(TEXT)
    return bytes(buffer.getvalue().to_pybytes())


def archive(mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as file:  # type: ignore[call-overload]
        file.addfile(tarfile.TarInfo("orders.csv"), io.BytesIO())
    return buffer.getvalue()


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("orders.csv", TEXT)
    return buffer.getvalue()


CONTENTS = {
    "plain": TEXT,
    "gzip": gzip.compress(TEXT),
    "bzip2": bz2.compress(TEXT),
    "xz": lzma.compress(TEXT),
    "zstd": framed("zstd"),
    "lz4": framed("lz4"),
    "deflate": zlib.compress(TEXT),
    "snappy": bytes(pa.compress(TEXT, "snappy", asbytes=True)),
    "zip": zipped(),
    "tar": archive("w"),
    "tgz": archive("w:gz"),
    "hadoop": len(TEXT).to_bytes(4) + (14).to_bytes(4) + bytes(pa.compress(TEXT, "snappy", asbytes=True)),
}


@pytest.mark.parametrize(
    ("content", "name", "told"),
    [
        ("plain", "orders.csv", None),
        ("gzip", "orders.csv.gz", None),
        ("gzip", "ORDERS.CSV.GZ", None),
        ("bzip2", "orders.csv.bz2", None),
        ("zstd", "orders.csv.zst", None),
        ("deflate", "orders.csv.deflate", None),
        ("hadoop", "orders.csv.snappy", None),
        ("gzip", "orders.csv", "gzip|Deliver it as orders.csv.gz"),
        ("gzip", "gzip=1/orders.json", "gzip|Deliver it as orders.json.gz"),
        ("gzip", "orders", "gzip|Deliver it as orders.gz"),
        ("bzip2", "orders.csv.gz", "bzip2|Deliver it as orders.csv.bz2"),
        ("zstd", "orders.csv", "zstd|Deliver it as orders.csv.zst"),
        ("xz", "orders.csv.xz", "xz|compressed with gzip"),
        ("lz4", "orders.csv.lz4", "lz4|compressed with gzip"),
        ("plain", "orders.csv.gz", "not compressed with gzip|Deliver it as orders.csv"),
        ("plain", "orders.csv.bz2", "not compressed with bzip2|Deliver it as orders.csv"),
        ("plain", "orders.csv.deflate", "not compressed with deflate|Deliver it as orders.csv"),
        ("snappy", "orders.csv.snappy", "not compressed with snappy|Deliver it as orders.csv"),
        ("zip", "orders.csv", "zip archive|Deliver the files in it"),
        ("zip", "orders.zip", "zip archive|Deliver the files in it"),
        ("tar", "orders.csv", "tar archive|Deliver the files in it"),
        ("tgz", "orders.tar.gz", "tar archive|Deliver the files in it"),
    ],
)
def test_a_file_is_named_by_how_it_is_compressed(content: str, name: str, told: str | None) -> None:
    """Case 13: what it is and how it must be called; never another encoding."""
    found = CONTENTS[content]
    source = Source("the slice s1", "/lake/s1", (FileEntry(name, len(found)),), "csv")
    firsts = source.first_bytes(lambda _, size: found[:size])
    if told is None:
        check_compression(source, firsts)
        return
    with pytest.raises(SliceError) as refused:
        check_compression(source, firsts)
    what, advice = told.split("|")
    assert what in refused.value.message
    assert f"/lake/s1/{name}" in refused.value.message
    assert advice in str(refused.value.remedy)
    assert "encoding" not in str(refused.value.remedy)
    assert refused.value.details[MAY_SKIP]


def test_texts_that_only_begin_like_something_are_texts() -> None:
    for text in (b"BZh9,name\n", b"PK,name\n", b"7z,name\n", b"ustar\n" * 60, b"", b"\x1f\x8b"):
        assert compression_of(text) is None


MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE)


@pytest.mark.parametrize(
    ("name", "blank"),
    [
        *(("a.csv", each) for each in (b"", b"\n", b"\r\n\r\n", *MARKS, b"\xef\xbb\xbf\r\n")),
        ("a.csv.gz", gzip.compress(b"\n", mtime=0)),
        ("a.csv.bz2", bz2.compress(b"\n")),
    ],
)
def test_files_without_content_are_left_out(name: str, blank: bytes) -> None:
    contents = {name: blank, "b.csv": TEXT}
    files = tuple(FileEntry(name, len(content)) for name, content in contents.items())
    source = Source("the slice s1", "/lake/s1", files, "csv")
    firsts = source.first_bytes(lambda path, size: contents[path.rpartition("/")[2]][:size])
    assert [file.name for file in with_content(source, firsts).files] == ["b.csv"]
    alone = Source("the slice s1", "/lake/s1", files[:1], "csv")
    assert with_content(alone, firsts).files == ()


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("a.csv.gz", gzip.compress(b"", mtime=0) + gzip.compress(TEXT, mtime=0)),
        ("a.csv.gz", gzip.compress(TEXT, mtime=0)[:12]),
        ("a.csv.bz2", bz2.compress(TEXT)[:20]),
    ],
)
def test_files_of_several_parts_and_damaged_ones_have_content(name: str, packed: bytes) -> None:
    source = Source("the slice s1", "/lake/s1", (FileEntry(name, len(packed)),), "csv")
    assert with_content(source, {name: packed}).files == source.files


def test_a_file_that_is_gone_is_left_to_spark() -> None:
    """It is reported by its name when it is read; a probe must not fail in Python's words."""

    def gone(path: str, size: int) -> bytes:
        raise FileNotFoundError(path)

    source = Source("the slice s1", "/lake/s1", (FileEntry("a.csv", 3), FileEntry("b.csv", 0)), "csv")
    firsts = source.first_bytes(gone)
    check_compression(source, firsts)
    assert [file.name for file in with_content(source, firsts).files] == ["a.csv"]
