"""Facts about a file found without Spark: how its bytes are compressed, and whether it holds any row.

Source: the magic numbers in RFC 1952, RFC 8878, and the formats of bzip2, xz, lz4, snappy, lzop, zip and tar.
"""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from lakewright.lake.parquet_footer import count_rows
from lakewright.lake.paths import local_path

PROBE = 512
"""The bytes that are enough to find it."""

ARCHIVES = frozenset({"zip", "tar", "7z", "rar"})
"""What holds files, not one text."""

_MAGIC: Mapping[str, tuple[bytes, ...]] = {
    "gzip": (b"\x1f\x8b\x08",),
    "bzip2": tuple(b"BZh%d1AY&SY" % level for level in range(1, 10)),
    "zstd": (b"\x28\xb5\x2f\xfd",),
    "xz": (b"\xfd7zXZ\x00",),
    "lz4": (b"\x04\x22\x4d\x18",),
    "snappy": (b"\xff\x06\x00\x00sNaPpY",),
    "lzop": (b"\x89LZO\x00\r\n\x1a\n",),
    "zip": (b"PK\x03\x04", b"PK\x05\x06"),
    "7z": (b"7z\xbc\xaf\x27\x1c",),
    "rar": (b"Rar!\x1a\x07",),
}
_SUFFIXES: Mapping[str, str] = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".bz2": "bzip2",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".deflate": "deflate",
    ".snappy": "snappy",
    ".lz4": "lz4",
}


def compression_of(first: bytes) -> str | None:
    """Return how bytes are compressed or packed, by the first `PROBE` of them; None if they aren't.

    Example:
        >>> compression_of(b"BZh91AY&SY..."), compression_of(b"id,name")
        ('bzip2', None)
    """
    found = next((kind for kind, marks in _MAGIC.items() if first.startswith(marks)), None)
    if found == "gzip" and _is_tar(_begin_of_gzip(first)):
        return "tar"
    return "tar" if found is None and _is_tar(first) else found


def named_compression(name: str) -> str | None:
    """Return how Spark decompresses a text file of this name; None if it reads the bytes as they are.

    Example:
        >>> named_compression("day1.CSV.GZ"), named_compression("day1.csv")
        ('gzip', None)
    """
    return _SUFFIXES.get(PurePosixPath(name).suffix.lower())


def _is_tar(first: bytes) -> bool:
    return first[257:262] == b"ustar" and b"\x00" in first[:257]


def _begin_of_gzip(first: bytes) -> bytes:
    try:
        return zlib.decompressobj(31).decompress(first, PROBE)
    except zlib.error:
        return b""


_OPENERS: Mapping[str, Callable[..., Any]] = {"gzip": gzip.open, "bzip2": bz2.open}
_DECOMPRESSORS: Mapping[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "bzip2": bz2.BZ2Decompressor,
}

DAMAGED = (OSError, EOFError, zlib.error)
"""What a file raises that is gone, or whose compression is damaged; reading it raises an error anyway."""

_LINES = frozenset({"csv", "json", "text"})
_BLOCK, _LARGE_BLOCK = 1 << 16, 1 << 20


def has_rows(file: Path, file_format: str, options: Mapping[str, str]) -> bool:
    """Return whether a file holds a row; one that can't be examined counts as having one unless it is empty.

    A CSV file with only a header has no rows.
    """
    if file.stat().st_size == 0:
        return False
    try:
        if file_format == "parquet":
            return count_rows(file) > 0
        header = options.get("header", "false").strip().lower() == "true"
        return file_format not in _LINES or _has_lines(file, 2 if file_format == "csv" and header else 1)
    except (ValueError, *DAMAGED):
        return True  # it is damaged, and reading it raises the error


def _has_lines(file: Path, wanted: int) -> bool:
    """Return whether a file has that many lines that aren't blank; it is read in blocks, not by lines."""
    found, is_blank = 0, True
    with opened(file) as stream:
        while block := stream.read(_BLOCK):
            *ended, rest = block.replace(b"\r", b"\n").split(b"\n")
            for line in ended:
                found += not (is_blank and not line.strip())
                is_blank = True
            is_blank = is_blank and not rest.strip()
            if found + (not is_blank) >= wanted:
                return True
    return False


def begin_of_text(content: bytes, name: str, encoding: str) -> tuple[str, bool]:
    """Return the text that the first bytes of a file begin with, and whether they are all of it.

    Args:
        content: The bytes, decompressed as the name says.
        name: The file's name.
        encoding: A name that Python knows.
    """
    is_whole = True
    if (decompressor := _DECOMPRESSORS.get(named_compression(name) or "")) is not None:
        packed = decompressor()
        content = packed.decompress(content, _LARGE_BLOCK)
        is_whole = packed.eof and not packed.unused_data
    return content.decode(encoding, errors="replace"), is_whole


def is_examinable(path: Path) -> bool:
    """Return whether Spark does not decompress a file, or in a way that Python can, too."""
    return named_compression(path.name) in {None, *_OPENERS}


def is_near(path: str) -> bool:
    """Return whether Python can read a file: it is on this machine, and `is_examinable`."""
    local = local_path(path)
    return local is not None and is_examinable(local)


def opened(file: Path) -> IO[bytes]:
    """Open a file, decompressed by its name as Spark does it.

    Raises:
        OSError: It can't be opened, or is compressed in a way that Python can't undo.
    """
    kind = named_compression(file.name)
    opener = open if kind is None else _OPENERS.get(kind)
    if opener is None:
        raise OSError(f"{file} is compressed with {kind}")
    return cast("IO[bytes]", opener(file, "rb"))
