"""Facts about a file found without Spark: whether it holds any row, and how the lines of a CSV file end.

Source: RFC 4180, section 2 (fields in quotes may hold line breaks, and quotes that are doubled).
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import mmap
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, cast

from lakewright.lake.parquet_footer import count_rows

__all__ = ["has_rows", "quoted_line_ends"]

_OPENERS: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_OTHER_COMPRESSIONS = frozenset({".zst", ".zstd", ".snappy", ".lz4", ".deflate", ".lzo"})
_LINES = frozenset({"csv", "json", "text"})
_BLOCK = 1 << 16

_BREAK = re.compile(rb"\r\n|\n|\r")
_PART = re.compile(
    rb'([^"]++)|'
    # Fields begin after a comma, a line break or a byte order mark.
    rb"(?:(?<![^,\r\n])|(?<=\A\xef\xbb\xbf))"
    rb'"([^"]*+(?:""[^"]*+)*+)("[ \t]*(?=[,\r\n]|\Z))?|'
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
    except (OSError, EOFError, lzma.LZMAError):
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


def quoted_line_ends(path: Path) -> frozenset[str] | None:
    """Return the line endings of a CSV file with line breaks inside quotes; none if it has no such breaks.

    Return None if the file can't be examined. A quote is an ordinary character in a field that doesn't begin
    with one.

    Raises:
        ValueError: A quote is never closed, or closes in the middle of its field.
    """
    try:
        stream = _open(path)
        if stream is None:
            return None
        with stream:
            if not _has_odd_lines(stream):
                return frozenset()
            stream.seek(0)
            with tempfile.TemporaryFile() as file:
                shutil.copyfileobj(stream, file)
                file.flush()
                return _line_ends(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, EOFError, lzma.LZMAError, zlib.error):
        return None


def _has_odd_lines(stream: IO[bytes]) -> bool:
    """Return whether a line has an odd number of quotes, or a carriage return inside; a fast first test."""
    return any(line.count(b'"') % 2 or line.find(b"\r", 0, -2) >= 0 for line in stream)


def _line_ends(content: mmap.mmap) -> frozenset[str]:
    line, has_break = 1, False
    ends: set[bytes] = set()
    for part in _PART.finditer(content):
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
    """Open a file, decompressed by its suffix; return None if Python can't decompress it."""
    if file.suffix in _OTHER_COMPRESSIONS:
        return None
    opener = _OPENERS.get(file.suffix, open)
    return cast("IO[bytes]", opener(file, "rb"))
