"""Which files of a source have content: those without have no rows, and say nothing of columns.

Source: the rules of reading, "Places".
"""

from __future__ import annotations

import bz2
import codecs
import zlib
from collections.abc import Mapping

from lakewright.lake.file_probe import compression_of
from lakewright.reader.source import Source

__all__ = ["with_content"]

_MARKS = (
    codecs.BOM_UTF8,
    codecs.BOM_UTF32_LE,
    codecs.BOM_UTF32_BE,
    codecs.BOM_UTF16_LE,
    codecs.BOM_UTF16_BE,
)


def with_content(source: Source, firsts: Mapping[str, bytes]) -> Source:
    """Return a source of text files without those that have no content.

    These have no bytes, or only a byte order mark and line breaks.

    Args:
        source: The source.
        firsts: The first bytes of its files, by their names.
    """
    filled = [
        file
        for file in source.files
        if file.size and not is_blank(firsts.get(file.name, b""), is_all=len(firsts[file.name]) == file.size)
    ]
    return source.only(filled)


def is_blank(first: bytes, *, is_all: bool) -> bool:
    r"""Return whether the bytes of a file, all of which are given, are a byte order mark and line breaks.

    Example:
        >>> is_blank(b"\xef\xbb\xbf\r\n", is_all=True), is_blank(b"\n", is_all=False)
        (True, False)
    """
    if not is_all:
        return False
    try:
        text = _plain(first)
    except (OSError, ValueError, zlib.error):
        return False  # it is damaged, and reading it raises the error
    for mark in _MARKS:
        text = text.removeprefix(mark)
    return not text.strip(b"\r\n\0")


def _plain(content: bytes) -> bytes:
    kind = compression_of(content)
    if kind == "gzip":
        return zlib.decompressobj(31).decompress(content, 1 << 16)
    return bz2.decompress(content) if kind == "bzip2" else content
