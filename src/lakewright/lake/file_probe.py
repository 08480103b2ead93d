"""Facts about a file found without Spark: whether it holds any row, and how the lines of a CSV file end.

Source: RFC 4180, section 2 (fields in quotes may hold line breaks, and quotes that are doubled).
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import mmap
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from lakewright.lake.compression import named_compression
from lakewright.lake.parquet_footer import count_rows
from lakewright.lake.paths import local_path

__all__ = [
    "CsvScan",
    "has_rows",
    "has_typeless_json",
    "holds_json_texts",
    "is_examinable",
    "is_near",
    "lines_of",
    "marked_encoding",
    "quoted_line_ends",
    "scan_csv",
    "undecodable_line",
]

_OPENERS: Mapping[str, Callable[..., Any]] = {"gzip": gzip.open, "bzip2": bz2.open}
_LINES = frozenset({"csv", "json", "text"})
_BLOCK, _LARGE_BLOCK = 1 << 16, 1 << 20

_TYPELESS = re.compile(rb"null|\[\s*\]")
_LONGEST_GAP = 64
_LONGEST_FIELD = 512

_BREAK = re.compile(rb"\r\n|\n|\r")
_RETURN = re.compile(rb"\r[^\n]")


@lru_cache
def _parts(separator: bytes) -> re.Pattern[bytes]:
    """Return the pattern of a part of a CSV file: text without quotes, a quoted field, or a single quote."""
    sign = re.escape(separator)
    return re.compile(
        rb'([^"]++)|'
        # Fields begin after a separator, a line break or a byte order mark.
        rb"(?:(?<![^" + sign + rb"\r\n])|(?<=\A\xef\xbb\xbf))"
        rb'"([^"]*+(?:""[^"]*+)*+)("[ \t]*(?=[' + sign + rb"\r\n]|\Z))?|"
        rb'"'
    )


def has_rows(file: Path, file_format: str, options: Mapping[str, str]) -> bool:
    """Return whether a file holds a row; one that can't be examined counts as having one unless it is empty.

    A CSV file with only a header has no rows.
    """
    if file.stat().st_size == 0:
        return False
    if file_format == "parquet":
        return _has_parquet_rows(file)
    if file_format not in _LINES:
        return True
    header = options.get("header", "false").strip().lower() == "true"
    try:
        return _has_lines(file, 2 if file_format == "csv" and header else 1)
    except (OSError, EOFError):
        return True  # it is damaged, and reading it raises the error


def _has_parquet_rows(file: Path) -> bool:
    try:
        return count_rows(file) > 0
    except ValueError:
        return True  # it is damaged, and reading it raises the error


def _has_lines(file: Path, wanted: int) -> bool:
    """Return whether a file has that many lines that aren't blank; it is read in blocks, not by lines."""
    found, is_blank = 0, True
    stream = _open(file)
    if stream is None:
        return True
    with stream:
        while block := stream.read(_BLOCK):
            *ended, rest = block.replace(b"\r", b"\n").split(b"\n")
            for line in ended:
                found += not (is_blank and not line.strip())
                is_blank = True
            is_blank = is_blank and not rest.strip()
            if found + (not is_blank) >= wanted:
                return True
    return False


def undecodable_line(path: Path, encoding: str) -> int | None:
    """Return the number of the first line with bytes that an encoding does not have; None if there is none.

    A file that can't be examined has none.
    """
    decoder, line = codecs.getincrementaldecoder(encoding)(), 1
    try:
        stream = _open(path)
        if stream is None:
            return None
        with stream:
            while block := stream.read(_LARGE_BLOCK):
                line += decoder.decode(block).count("\n")
            decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return line + _lines_before(error, encoding)
    except (OSError, EOFError, zlib.error):
        return None  # Spark reports the error when it reads the file
    return None


def marked_encoding(path: Path) -> str | None:
    """Return the wide encoding that a file's byte order mark tells, or None."""
    try:
        stream = _open(path)
        with stream or nullcontext() as opened:
            first = b"" if opened is None else opened.read(4)
    except (OSError, EOFError, zlib.error):
        return None
    # The mark of UTF-32 begins with that of UTF-16.
    if first.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "UTF-32"
    return "UTF-16" if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None


class CsvScan(NamedTuple):
    """What one pass through a CSV file finds.

    Attributes:
        undecodable: The number of the first line with bytes that the encoding does not have, or None.
        may_break: Whether a field in quotes may hold a line break: a line has an odd number of quotes, or a
            carriage return inside.
    """

    undecodable: int | None
    may_break: bool


def scan_csv(path: Path, encoding: str) -> CsvScan | None:
    """Return what one pass through a CSV file finds; None if it can't be examined.

    Args:
        path: The file.
        encoding: A name that Python knows, of an encoding in which a line break is one byte.
    """
    decoder, line = codecs.getincrementaldecoder(encoding)(), 1
    quotes, ends_in_return, may_break = 0, False, False
    try:
        stream = _open(path)
        if stream is None:
            return None
        with stream:
            while block := stream.read(_LARGE_BLOCK):
                line += decoder.decode(block).count("\n")
                may_break = may_break or _RETURN.search(block) is not None
                may_break = may_break or (ends_in_return and not block.startswith(b"\n"))
                ends_in_return = block.endswith(b"\r")
                if not may_break and (quotes or b'"' in block):
                    *lines, rest = block.split(b"\n")
                    for each in lines:
                        may_break = may_break or (quotes + each.count(b'"')) % 2 == 1
                        quotes = 0
                    quotes += rest.count(b'"')
            decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return CsvScan(line + _lines_before(error, encoding), may_break)
    except (OSError, EOFError, zlib.error):
        return None  # Spark reports the error when it reads the file
    return CsvScan(None, may_break or quotes % 2 == 1)


def _lines_before(error: UnicodeDecodeError, encoding: str) -> int:
    # Bytes that the decoder kept from the block before are a part of `object`.
    return error.object[: error.start].decode(encoding, errors="ignore").count("\n")


def has_typeless_json(path: Path) -> bool:
    """Return whether a JSON file may have nulls or empty lists; one that can't be examined may.

    Only they can leave a column without a type. The text of a value may look like one.
    """
    end = b""
    try:
        stream = _open(path)
        if stream is None:
            return True
        with stream:
            while block := stream.read(_LARGE_BLOCK):
                # In UTF-16 and UTF-32, bytes of zero lie between the characters.
                text = end + block.replace(b"\0", b"")
                if _TYPELESS.search(text):
                    return True
                end = text[-_LONGEST_GAP:]
    except (OSError, EOFError, zlib.error):
        return True
    return False


def holds_json_texts(paths: Iterable[Path], wanted: Mapping[str, int]) -> bool:
    """Return whether JSON files have a text for each of some fields; False if that is not certain.

    Args:
        paths: The files.
        wanted: Names of fields that occur at one place each, and in how many lists their texts are.
    """
    left = dict(wanted)
    for path in paths:
        try:
            stream = _open(path)
            if stream is None:
                return False
            with stream:
                _remove_found_texts(stream, left)
        except (OSError, EOFError, zlib.error):
            return False
        if not left:
            return True
    return not left


def _remove_found_texts(stream: IO[bytes], left: dict[str, int]) -> None:
    end = b""
    while left and (block := stream.read(_LARGE_BLOCK)):
        text = end + block.replace(b"\0", b"")
        names = b"|".join(re.escape(name.encode()) for name in left)
        # Inside a text, quotes are escaped: what follows an unescaped one is no part of it.
        for found in re.finditer(rb'(?<!\\)"(%s)"\s*:((?:\s*\[)*)\s*"' % names, text):
            if left.get(found[1].decode()) == found[2].count(b"["):
                del left[found[1].decode()]
        end = text[-_LONGEST_FIELD:]


def lines_of(path: Path, encoding: str) -> Iterator[str]:
    """Yield the lines of a text file without their ends; none if it can't be examined."""
    try:
        stream = _open(path)
        if stream is None:
            return
        with io.TextIOWrapper(stream, encoding=encoding, errors="replace") as lines:
            for line in lines:
                yield line.removeprefix("\ufeff").rstrip("\r\n")
    except (OSError, EOFError, zlib.error):
        return


def is_examinable(path: Path) -> bool:
    """Return whether Spark does not decompress a file, or in a way that Python can, too."""
    return named_compression(path.name) in {None, *_OPENERS}


def is_near(path: str) -> bool:
    """Return whether Python can read a file: it is on this machine, and `is_examinable`."""
    local = local_path(path)
    return local is not None and is_examinable(local)


def quoted_line_ends(
    path: Path, separator: str = ",", *, has_been_scanned: bool = False
) -> frozenset[str] | None:
    """Return the line endings of a CSV file with line breaks inside quotes; none if it has no such breaks.

    Return None if the file can't be examined. A quote is an ordinary character in a field that doesn't begin
    with one.

    Args:
        path: The file.
        separator: What stands between two fields.
        has_been_scanned: Whether `scan_csv` has found that it may have such breaks.

    Raises:
        ValueError: A quote is never closed, or closes in the middle of its field.
    """
    try:
        stream = _open(path)
        if stream is None:
            return None
        with stream:
            if not has_been_scanned:
                if not _has_odd_lines(stream):
                    return frozenset()
                stream.seek(0)
            with tempfile.TemporaryFile() as file:
                shutil.copyfileobj(stream, file)
                file.flush()
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                return _line_ends(content, separator.encode())
    except (OSError, EOFError, zlib.error):
        return None


def _has_odd_lines(stream: IO[bytes]) -> bool:
    """Return whether a line has an odd number of quotes, or a carriage return inside; a fast first test."""
    return any(line.count(b'"') % 2 or line.find(b"\r", 0, -2) >= 0 for line in stream)


def _line_ends(content: mmap.mmap, separator: bytes) -> frozenset[str]:
    line, has_break = 1, False
    ends: set[bytes] = set()
    for part in _parts(separator).finditer(content):
        plain, text, close = part.groups()
        breaks = _BREAK.findall(plain or text or b"")
        if plain:
            ends.update(breaks)
        elif text is not None:
            if close is None and (breaks or part.end() == len(content)):
                raise ValueError(f"a quote that is opened in line {line} isn't closed where its field ends")
            has_break = has_break or bool(breaks)
        line += len(breaks)
    return frozenset(end.decode() for end in ends) if has_break else frozenset()


def _open(file: Path) -> IO[bytes] | None:
    """Open a file, decompressed by its name as Spark does it; return None if Python can't decompress it."""
    kind = named_compression(file.name)
    opener = open if kind is None else _OPENERS.get(kind)
    return None if opener is None else cast("IO[bytes]", opener(file, "rb"))
