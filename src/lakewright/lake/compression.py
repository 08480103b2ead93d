"""How bytes are compressed or packed, found by the first of them; and what a file's name says of it.

Source: the magic numbers in RFC 1952, RFC 8878, and the formats of bzip2, xz, lz4, snappy, lzop, zip and tar.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import PurePosixPath

__all__ = ["ARCHIVES", "PROBE", "compression_of", "named_compression"]

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
