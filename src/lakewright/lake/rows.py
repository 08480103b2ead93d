"""Whether a file of a known format holds any row, found without Spark."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, cast

from lakewright.lake.parquet_footer import count_rows

__all__ = ["has_rows", "opened"]

_OPENERS: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_OTHER_COMPRESSIONS = frozenset({".zst", ".zstd", ".snappy", ".lz4", ".deflate", ".lzo"})
_LINES = frozenset({"csv", "json", "text"})
_BLOCK = 1 << 16


def has_rows(file: Path, file_format: str, options: Mapping[str, str]) -> bool:
    """Return whether a file holds a row; one that can't be looked into does, if it isn't empty.

    A CSV file that holds nothing but its header has no rows.
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
        return True  # damaged: reading it says so


def _has_parquet_rows(file: Path) -> bool:
    try:
        return count_rows(file) > 0
    except ValueError:
        return True  # damaged: reading it says so


def _has_lines(file: Path, wanted: int) -> bool:
    """Return whether there are that many lines with anything in them; long lines are not held in memory."""
    found, is_blank = 0, True
    stream = opened(file)
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


def opened(file: Path) -> IO[bytes] | None:
    """Return a file's content, unpacked as its name says, or None if it is packed in a way unknown here."""
    if file.suffix in _OTHER_COMPRESSIONS:
        return None
    opener = _OPENERS.get(file.suffix, open)
    return cast("IO[bytes]", opener(file, "rb"))
