"""The beginning and the end of a file, decompressed: as much of it as is looked at."""

from __future__ import annotations

import bz2
import codecs
import zlib
from dataclasses import dataclass
from typing import Any

from lakewright.errors import LakewrightError
from lakewright.lake.file_probe import ARCHIVES, compression_of
from lakewright.lake.files import Files
from lakewright.profiling.places import FoundFile
from lakewright.profiling.reason import Code, Reason

FIRST = 2 << 20
"""Bytes at the beginning that are looked at; decompressed ones, where a file is compressed."""

_LAST = 1 << 16
"""Bytes at the end, where the beginning is not all."""

_MOST_CONTROLS = 0.02
_FEW_CONTROLS = 8
"""Control characters that a text may have, as a share and as a number."""

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "UTF-8"),
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
"""Byte order marks with the encodings that they show; that of UTF-32 begins with that of UTF-16."""


class NotData(Exception):
    """A file can't be looked into, or holds no rows."""

    def __init__(self, code: Code, **given: Any) -> None:
        super().__init__(str(code))
        self.reason = Reason.of(code, **given)


@dataclass(frozen=True, slots=True)
class Sample:
    """What is looked at of a file.

    Attributes:
        first: The beginning.
        last: The end; empty if the beginning is all, or if it can't be read alone.
        is_whole: Whether the beginning is all.
    """

    first: bytes
    last: bytes
    is_whole: bool


def sample_of(file: FoundFile, system: Files) -> Sample:
    """Return the beginning and the end of a file.

    Raises:
        NotData: It can't be read, is an archive, or is packed in a way that Python does not know.
    """
    if not file.size:
        return Sample(b"", b"", is_whole=True)
    try:
        first = system.read_range(file.path, 0, min(file.size, FIRST))
        packed = compression_of(first)
        is_plain = packed is None and file.size > FIRST
        start = max(FIRST, file.size - _LAST)
        last = system.read_range(file.path, start, file.size - start) if is_plain else b""
    except (OSError, LakewrightError) as error:
        raise NotData(Code.UNREADABLE, why=getattr(error, "strerror", None) or str(error)) from error
    if packed in ARCHIVES:
        raise NotData(Code.ARCHIVE, kind=packed)
    if packed is None:
        return Sample(first, last, is_whole=file.size <= FIRST)
    return _unpacked(first, packed, is_all=file.size <= FIRST)


def _unpacked(content: bytes, kind: str, *, is_all: bool) -> Sample:
    try:
        if kind == "gzip":
            gzipped = zlib.decompressobj(wbits=31)
            text = gzipped.decompress(content, FIRST)
            while gzipped.eof and gzipped.unused_data and len(text) < FIRST:  # several members in a row
                content, gzipped = gzipped.unused_data, zlib.decompressobj(wbits=31)
                text += gzipped.decompress(content, FIRST - len(text))
            is_end = gzipped.eof and not gzipped.unused_data
            is_cut = is_all and not gzipped.eof and not gzipped.unconsumed_tail
        elif kind == "bzip2":
            packed = bz2.BZ2Decompressor()
            text = packed.decompress(content, FIRST)
            is_end = packed.eof and not packed.unused_data
            is_cut = is_all and not packed.eof and packed.needs_input
        else:
            raise NotData(Code.COMPRESSION, kind=kind)
    except (OSError, zlib.error) as error:
        raise NotData(Code.DAMAGED, why=str(error)) from error
    if is_cut:
        raise NotData(Code.DAMAGED, why=f"its {kind} data ends too early")
    return Sample(text, b"", is_whole=is_end)


def text_of(content: bytes, *, is_whole: bool) -> tuple[str, str]:
    """Return the text that bytes are, and its encoding: by a byte order mark, or by what decodes it.

    Raises:
        NotData: They are no text.
    """
    marked = next((name for mark, name in _BYTE_ORDER_MARKS if content.startswith(mark)), None)
    for encoding in [marked] if marked else ["UTF-8", _one_byte_encoding(content)]:
        decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding == "UTF-8" else encoding)()
        try:
            text = decoder.decode(content, final=is_whole)
        except UnicodeDecodeError:
            continue
        controls = sum(map(text[:_LAST].count, map(chr, (*range(9), *range(14, 27), *range(28, 32)))))
        if controls > max(_FEW_CONTROLS, _MOST_CONTROLS * len(text[:_LAST])) or "\0" in text[:_LAST]:
            raise NotData(Code.BINARY)
        return text, encoding
    raise NotData(Code.BINARY)


def _one_byte_encoding(content: bytes) -> str:
    """Return the encoding of western texts: ISO 8859-1 has no characters where Windows has some."""
    return "windows-1252" if any(0x80 <= byte <= 0x9F for byte in content) else "ISO-8859-1"
