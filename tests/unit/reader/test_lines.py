"""Lines of CSV files: their ends, and line breaks inside quotes."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakewright.lake.files import LocalFiles
from lakewright.reader import lines
from lakewright.reader.lines import Lines, begin_record, lines_of, scan, undecodable_line
from lakewright.reader.source import FileFault, Form, marked_encoding

PLAIN = (None, False)


def ends(path: Path, **form: Any) -> tuple[str | None, bool]:
    found = scan(path, Form("csv", **form))
    assert found is not None
    return found.end, found.has_breaks


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", PLAIN),
        (b"id,v\nA,b\nC,d", PLAIN),
        (b"id,v\r\nA,b\r\nC,d\r\n", PLAIN),
        (b"id,v\rA,b\rC,d\r", PLAIN),
        (b"id,v\r\nA,b\nC,d\r\n", PLAIN),
        (b"id,v\nA,b\rc\nC,d\n", ("\n", False)),
        (b"id,v\r\nA,b\rc\r\nC,d\r\n", ("\r\n", False)),
        (b"i\rd,v\nA,b\nC,d\n", ("\n", False)),
        (b'id,v\nA,"b\rc"\n', ("\n", False)),
        (b'id,v\nA,"b, ""c"""\nD,""\nE,"" \nF,""""', PLAIN),
        (b'id,v\nA,5" pipe\nB,6" x 7"\nC,"d"\n', PLAIN),
        (b'id,v\nA,"b" and "c"\nD, "e\n', PLAIN),
        (b'id,v\nA,"two\nlines"\n', ("\n", True)),
        (b'id,v\nA,"two\r\nlines"\n', ("\n", True)),
        (b'id,v\r\nA,"two\nlines"\r\n', ("\r\n", True)),
        (b'id,v\rA,"two\r\nlines"\r', ("\r", True)),
        (b'id,v\rA,"two\nlines"\r', ("\r", True)),
        (b'id,v\rA,"two\rlines"\r', ("\r", True)),
        (b'\xef\xbb\xbf"a\nb",v\r\n', ("\r\n", True)),
        (b'id,v\n"a ""\n"" b" ,"c"', ("\n", True)),
        # A quote in a field without quotes makes the number even in the line in which another field begins.
        (b'id,v\n5",two\n5","two\nlines"\n', ("\n", True)),
        (b'id,v\n5","two lines"\n"a,","b"\n', PLAIN),
        # Spark loses a NUL at the end of a line.
        (b'id,v\nA,"\0b"\n', ("\n", True)),
    ],
)
def test_line_ends(tmp_path: Path, content: bytes, expected: tuple[str | None, bool]) -> None:
    """Rules of reading, "Places": LF, CR LF or CR, found for each file; a lone CR belongs to the value."""
    (tmp_path / "s.csv").write_bytes(content)
    (tmp_path / "s.csv.gz").write_bytes(gzip.compress(content))
    (tmp_path / "w.csv").write_bytes(content.decode("utf-8-sig").encode("utf-16"))
    assert ends(tmp_path / "s.csv") == expected
    assert ends(tmp_path / "s.csv.gz") == expected
    assert ends(tmp_path / "w.csv", encoding="utf-16") == expected


@pytest.mark.parametrize(
    ("form", "content", "expected"),
    [
        ({"separator": ";"}, b'id;v\nA;"two\nlines"\n', ("\n", True)),
        ({"separator": ";"}, b'id;v\nA,"b\nC;d"\n', PLAIN),
        ({"separator": "||"}, b'id||v\nA||"two\nlines"\n', ("\n", True)),
        ({"quote": "'", "escape": "'"}, b"id,v\nA,'two\nlines'\n", ("\n", True)),
        ({"quote": "", "escape": ""}, b'id,v\nA,"two\nlines",x\n', PLAIN),
        ({"escape": "\\"}, b'id,v\nA,"a\\"\nb"\n', ("\n", True)),
        ({"escape": "\\"}, b'id,v\nA,"a\\\\"\nb,c\n', PLAIN),
        ({"comment": "#"}, b'#"\nid,v\n#"\nA,b\n', PLAIN),
        ({"separator": "\t"}, b"id\tv\n\t\nA\tb\n", ("\n", True)),
        ({}, b"id\nA\n  \nB\n", ("\n", True)),
        ({}, b"id\nA\n  ", ("\n", True)),
        ({}, b"id,v\nA,b\n  \nB,c\n", PLAIN),
    ],
)
def test_signs_of_a_file(
    tmp_path: Path, form: dict[str, Any], content: bytes, expected: tuple[str | None, bool]
) -> None:
    (tmp_path / "s.csv").write_bytes(content)
    assert ends(tmp_path / "s.csv", **form) == expected


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        ('id,v\nA,"b\nC,d\n', "open_quote", 2),
        ('id,v\nA,"b\nb"\nC,"d', "open_quote", 4),
        ('id,v\nA,"two\nB,"y"\n', "open_quote", 2),
        ('id,v\nA,"', "open_quote", 2),
        ('id,v\nA,"b"\nC,"x""\0y"\n', "nul", 3),
        ('id,v\nA,"x\n\0""y"\n', "nul", 2),
        ('id,v\rA,"b\rC,d\r', "open_quote", 2),
        ('id,v\nA,"two\nlines"\r\n', "mixed_ends", None),
        ("id,v\r\nA,b\rc\nB,d\r\n", "mixed_ends", None),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, content: str, code: str, line: int | None) -> None:
    path = tmp_path / "s.csv"
    path.write_bytes(content.encode())
    with pytest.raises(FileFault) as raised:
        scan(path, Form("csv"))
    assert (raised.value.code, raised.value.line, raised.value.path) == (code, line, str(path))


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[str]], str, str]:
    width = draw(st.integers(1, 3))
    field = st.text('ab"\r\n,; ', max_size=4)
    rows = draw(st.lists(st.lists(field, min_size=width, max_size=width), min_size=1, max_size=6))
    return rows, draw(st.sampled_from(",;")), draw(st.sampled_from(["\n", "\r\n", "\r"]))


@example(([[";"], [" "]], ",", "\r\n"), 1, "utf-16")
@given(tables(), st.integers(1, 7), st.sampled_from(["utf-8", "utf-16", "latin-1"]))
def test_what_python_writes_is_understood(
    table: tuple[list[list[str]], str, str], block: int, encoding: str
) -> None:
    """Line breaks inside quotes never go unseen, in blocks of any size."""
    rows, separator, end = table
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(rows)
    breaks = any("\n" in value or "\r" in value for row in rows for value in row)
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(lines, "_BLOCK", block):
        path = Path(folder, "s.csv")
        path.write_bytes(text.getvalue().encode(encoding))
        found = scan(path, Form("csv", separator=separator, encoding=encoding))
        assert found is not None
        assert found.first == tuple(rows[0])
        assert found.is_alone == (len(rows) == 1)
        if not breaks:
            assert (found.end, found.has_breaks) == PLAIN
            return
        inner = [value for row in rows for value in row]
        assert found.end == end
        if end != "\r" and not any("\n" in value for value in inner):
            # A carriage return alone ends no line; of one column, what is no blank line is not looked at.
            assert not found.has_breaks or len(rows[0]) == 1
        else:
            assert found.has_breaks


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
    path = tmp_path / "s.csv"
    path.write_bytes(content)
    (tmp_path / "s.csv.gz").write_bytes(gzip.compress(content))
    assert undecodable_line(path, encoding) == line
    assert undecodable_line(tmp_path / "s.csv.gz", encoding) == line
    if line is None:
        assert scan(path, Form("csv", encoding=encoding)) is not None
        return
    with pytest.raises(FileFault) as raised:
        scan(path, Form("csv", encoding=encoding))
    assert (raised.value.code, raised.value.line) == ("undecodable", line)


def test_files_that_cannot_be_looked_into(tmp_path: Path) -> None:
    for name in ("s.csv.zst", "s.csv.gz"):
        (tmp_path / name).write_bytes(b'a\n"b\n')
        assert scan(tmp_path / name, Form("csv")) is None
    assert scan(tmp_path / "gone.csv", Form("csv")) is None
    assert begin_record(LocalFiles(), str(tmp_path / "s.csv.zst"), Form("csv")) is None


def test_a_first_record_that_never_ends_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_bytes(b"x" * 400 + b"\n")
    with mock.patch.object(lines, "_LONGEST_RECORD", 300), mock.patch.object(lines, "_BLOCK", 100):
        with pytest.raises(FileFault) as raised:
            scan(path, Form("csv"))
        assert raised.value.code == "long_header"
    assert scan(path, Form("csv")) == Lines(("x" * 400,), is_alone=True)
    assert list(lines_of(path, "utf-8")) == ["x" * 400]


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (codecs.BOM_UTF16_LE + "id".encode("utf-16-le"), "UTF-16"),
        (codecs.BOM_UTF16_BE + "id".encode("utf-16-be"), "UTF-16"),
        (codecs.BOM_UTF32_LE + "id".encode("utf-32-le"), "UTF-32"),
        (codecs.BOM_UTF8 + b"id", None),
        ("ä".encode("cp1252"), None),
        (b"", None),
    ],
)
def test_a_byte_order_mark_shows_the_encoding(tmp_path: Path, content: bytes, encoding: str | None) -> None:
    """A file of UTF-16 was said to be windows-1252."""
    (tmp_path / "s.csv").write_bytes(content)
    with gzip.open(tmp_path / "s.csv.gz", "wb") as file:
        file.write(content)
    assert marked_encoding(tmp_path / "s.csv") == marked_encoding(tmp_path / "s.csv.gz") == encoding
    assert marked_encoding(tmp_path / "gone.csv") is None


def test_an_open_field_is_found_where_blocks_end_in_it(tmp_path: Path) -> None:
    content = b'id;:v\n5";:"two\nlines"\n'
    (tmp_path / "s.csv").write_bytes(content)
    for size in range(1, len(content)):
        with mock.patch.object(lines, "_BLOCK", size):
            assert ends(tmp_path / "s.csv", separator=";:") == ("\n", True), size
    (tmp_path / "s.csv").write_bytes(content[:16])
    with pytest.raises(FileFault) as raised:
        ends(tmp_path / "s.csv", separator=";:")
    assert raised.value.code == "open_quote"
