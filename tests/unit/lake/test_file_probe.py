"""Line breaks inside the quotes of CSV files."""

from __future__ import annotations

import codecs
import gzip
import tempfile
from contextlib import suppress
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.lake import file_probe
from lakewright.lake.file_probe import (
    holds_json_texts,
    marked_encoding,
    quoted_line_ends,
    scan_csv,
    undecodable_line,
)


@pytest.mark.parametrize(
    ("content", "ends"),
    [
        (b"", set()),
        (b"id,v\nA,b\r\nC,d\r", set()),
        (b'id,v\nA,"b, ""c"""\nD,""\nE,"" \nF,""""', set()),
        (b'id,v\nA,5" pipe\nB,6" x 7"\nC,"d"\n', set()),
        (b'id,v\nA,"b" and "c"\nD, "e\n', set()),
        (b'id,v\nA,"two\nlines"\n', {"\n"}),
        (b'id,v\r\nA,"two\nlines"\r\n', {"\r\n"}),
        (b'id,v\rA,"two\r\nlines"\r', {"\r"}),
        (b'id,v\rA,"two\rlines"\r', {"\r"}),
        (b'id,v\nA,"two\nlines"\r\n', {"\n", "\r\n"}),
        (b'\xef\xbb\xbf"a\nb",v\r\n', {"\r\n"}),
        (b'id,v\n"a ""\n"" b" ,"c"', {"\n"}),
    ],
)
def test_line_ends_where_quoted_fields_have_line_breaks(
    tmp_path: Path, content: bytes, ends: set[str]
) -> None:
    (tmp_path / "s.csv").write_bytes(content)
    (tmp_path / "s.csv.gz").write_bytes(gzip.compress(content))

    assert quoted_line_ends(tmp_path / "s.csv") == frozenset(ends)
    assert quoted_line_ends(tmp_path / "s.csv.gz") == frozenset(ends)
    assert quoted_line_ends(tmp_path / "s.csv", has_been_scanned=bool(content)) == frozenset(ends)
    scan = scan_csv(tmp_path / "s.csv.gz", "utf-8")
    assert scan is not None
    assert scan.may_break or not ends


@given(st.text('a"\r\n,', max_size=12), st.integers(1, 4))
def test_one_pass_misses_no_field_with_a_line_break(content: str, block: int) -> None:
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(file_probe, "_LARGE_BLOCK", block):
        path = Path(folder, "s.csv")
        path.write_bytes(content.encode())
        scan = scan_csv(path, "utf-8")
        assert scan is not None
        if content and not scan.may_break:
            # A quote that is closed inside its field, such as "a"b, is left to Spark.
            with suppress(ValueError):
                assert quoted_line_ends(path, has_been_scanned=True) == frozenset()
            assert quoted_line_ends(path) == frozenset()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('id,v\nA,"b\nC,d\n', 2),
        ('id,v\nA,"b\nb"\nC,"d', 4),
        ('id,v\nA,"two\nB,"y"\n', 2),
        ('id,v\nA,"', 2),
    ],
)
def test_quotes_that_are_not_closed_are_named(tmp_path: Path, content: str, line: int) -> None:
    (tmp_path / "s.csv").write_text(content)
    with pytest.raises(ValueError, match=rf"in line {line} isn't closed"):
        quoted_line_ends(tmp_path / "s.csv")


def test_files_that_cannot_be_looked_into(tmp_path: Path) -> None:
    for name in ("s.csv.zst", "s.csv.GZ", "s.csv.bz2"):
        (tmp_path / name).write_bytes(b'a\n"b\n')
        assert quoted_line_ends(tmp_path / name) is None
    assert quoted_line_ends(tmp_path / "gone.csv") is None


@pytest.mark.parametrize(
    ("content", "encoding", "line"),
    [
        (b"id,name\n1,Zo\xeb\n", "utf-8", 2),
        (b"id,name\n1,Zo\xeb\n", "latin-1", None),
        ("id\n1,Zoë\n".encode(), "utf-8", None),
        (b"\xef\xbb\xbfid\n", "utf-8", None),
        (b"a\nb\nc\xc3", "utf-8", 3),
        (b"a\n" * 700_000 + b"\xff", "utf-8", 700_001),
        (b"a" * ((1 << 20) - 1) + "ë\n".encode() + b"\xff", "utf-8", 2),
        (b"a\x81", "cp1252", 1),
        ("a\nb".encode("utf-16") + b"\x00", "utf-16", 2),
    ],
)
def test_the_line_of_bytes_that_an_encoding_does_not_have(
    tmp_path: Path, content: bytes, encoding: str, line: int | None
) -> None:
    """A6: they are never replaced in silence."""
    (tmp_path / "s.csv").write_bytes(content)
    (tmp_path / "s.csv.gz").write_bytes(gzip.compress(content))
    assert undecodable_line(tmp_path / "s.csv", encoding) == line
    assert undecodable_line(tmp_path / "s.csv.gz", encoding) == line
    scan = scan_csv(tmp_path / "s.csv", encoding)
    assert scan is not None
    assert scan.undecodable == line


def test_fields_in_quotes_begin_after_the_separator_of_the_file(tmp_path: Path) -> None:
    """A6: with `;`, a comma is an ordinary character."""
    (tmp_path / "s.csv").write_bytes(b'id;v\nA;"two\nlines"\n')
    assert quoted_line_ends(tmp_path / "s.csv", ";") == frozenset("\n")
    (tmp_path / "s.csv").write_bytes(b'id;v\nA,"b\nC;d"\n')
    assert quoted_line_ends(tmp_path / "s.csv", ";") == frozenset()


@pytest.mark.parametrize(
    ("content", "wanted", "is_certain"),
    [
        ('{"a": "x", "b": null}', {"a": 0}, True),
        ('{"a": null, "b": null}\n{"a" : \n"x"}', {"a": 0}, True),
        ('{"a": null}\n{"a": 1}', {"a": 0}, False),
        ('{"a": [], "b": ["x"]}', {"a": 1, "b": 1}, False),
        ('{"a": [["x"]], "b": [ [ "x" ] ]}', {"a": 2, "b": 2}, True),
        ('{"a": ["x"]}', {"a": 0}, False),
        ('{"t": "the \\"a\\": \\"x\\"", "a": null}', {"a": 0}, False),
        ('{"t": "x", "a b*": "x"}', {"t": 0, "a b*": 0}, True),
        ("{}", {}, True),
    ],
)
def test_texts_of_json_fields_are_found_where_that_is_certain(
    tmp_path: Path, content: str, wanted: dict[str, int], is_certain: bool
) -> None:
    """ "Schema Drift": such a slice needs no second look at its types."""
    padding = '{"n": 1}\n' * 300_000
    (tmp_path / "s.json").write_text(padding + content)
    assert holds_json_texts([tmp_path / "s.json"], wanted) is is_certain
    (tmp_path / "s.json.gz").write_bytes(gzip.compress(content.encode("utf-16")))
    assert holds_json_texts([tmp_path / "s.json.gz"], wanted) is is_certain
    assert not holds_json_texts([tmp_path / "gone.json"], wanted)


def test_the_texts_of_several_json_files_count_together(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.json").write_text(f'{{"{name}": "x", "c": null}}')
    assert holds_json_texts([tmp_path / "a.json", tmp_path / "b.json"], {"a": 0, "b": 0})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (codecs.BOM_UTF16_LE + "id".encode("utf-16-le"), "UTF-16"),
        (codecs.BOM_UTF16_BE + "id".encode("utf-16-be"), "UTF-16"),
        (codecs.BOM_UTF32_LE + "id".encode("utf-32-le"), "UTF-32"),
        (codecs.BOM_UTF8 + b"id", None),
        ("ä".encode("cp1252"), None),
        (b"", None),
    ],
)
def test_a_byte_order_mark_tells_the_encoding(tmp_path: Path, content: bytes, told: str | None) -> None:
    """A file of UTF-16 was told to be windows-1252."""
    (tmp_path / "s.csv").write_bytes(content)
    with gzip.open(tmp_path / "s.csv.gz", "wb") as file:
        file.write(content)
    assert marked_encoding(tmp_path / "s.csv") == marked_encoding(tmp_path / "s.csv.gz") == told
    assert marked_encoding(tmp_path / "gone.csv") is None
