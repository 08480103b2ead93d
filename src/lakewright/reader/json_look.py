"""What the bytes of JSON files show, before Spark parses them.

Spark's reader loses all but the first value of a line. Its inference of types takes half the time of a pass
over variants, but it does not tell texts from values of several kinds, nor how many digits a number has. The
look takes a tenth of it. It is bounded: files that are larger are read as if it had shown nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakewright.lake.file_probe import DAMAGED, is_near, opened
from lakewright.lake.paths import local_path
from lakewright.reader.source import Source

__all__ = ["Look", "look_at", "texts_and_nulls"]

_BLOCK = 1 << 20
_LONGEST_LINE = 1 << 26
_MOST_BYTES = 1 << 30
"""Bytes of the files of a source that are looked at, which take less than ten seconds."""

_MOST_LEVELS = 300
# Patterns that begin with one byte are the fastest.
_FOLLOWED = (re.compile(rb"\}[ \t]*[^ \t\r\n]"), re.compile(rb"\][ \t]*[^ \t\r\n]"))
_OBJECT_ENDS, _LIST_ENDS = (b"}\n", b"}\r\n"), (b"]\n", b"]\r\n")
_LIST = re.compile(rb'":[ \t]*\[')
_EMPTY_OBJECT = re.compile(rb"\{[ \t]*\}")
_STRUCTURE = b'"{}[]\n'
_NO_STRUCTURE = bytes(set(range(256)) - set(_STRUCTURE))
_TEXT = re.compile(rb'"[^"\n]*"')
_OUTER = re.compile(rb"[}\]]\n[{\[]")
_DIGITS = bytes.maketrans(b".123456789E", b"0000000000e")
_LONG = b"0" * 16
"""Digits, and a point among them, of a number that a double may not hold."""
_LARGE = re.compile(rb"e000+[,}\] \r\n]")
"""An exponent that a double may not hold."""


@dataclass(frozen=True, slots=True)
class Look:
    """What is found.

    Attributes:
        may_have_more: Whether a line may have more than one value.
        is_exact: Whether a double is sure to hold each number with all its digits.
        records: Number of records, if each line is one without lists and empty objects; None otherwise.
        texts: How many fields of these records have texts.
    """

    may_have_more: bool = True
    is_exact: bool = False
    records: int | None = None
    texts: int = 0


def look_at(source: Source, options: Mapping[str, str]) -> Look:
    """Return what the files of a source show; those that Python can't read may have anything."""
    given = {name.lower(): text.lower() for name, text in options.items()}
    if given.get("multiline") == "true" or any(name.startswith("allow") for name in given):
        return Look(may_have_more=False)  # only Spark's reader knows these options
    is_large = sum(file.size for file in source.files) > _MOST_BYTES
    # Only encodings whose line breaks are of several bytes have this option.
    if "linesep" in given or is_large or not all(map(is_near, source.paths)):
        return Look()
    found = [_look_at(path) for each in source.paths if (path := local_path(each)) is not None]
    counts = [each.records for each in found if each.records is not None]
    return Look(
        may_have_more=any(each.may_have_more for each in found),
        is_exact=all(each.is_exact for each in found),
        records=sum(counts) if len(counts) == len(found) else None,
        texts=sum(each.texts for each in found),
    )


def texts_and_nulls(source: Source, names: Sequence[str]) -> list[tuple[int, int]] | None:
    """Return how many fields of some names the records of a source have, and how many of these are null.

    Without characters that would be escaped in the names, they are all found unless None is returned.
    """
    found = [(0, 0) for _ in names]
    starts = [f'"{name}":'.encode() for name in names]
    for place in source.paths:
        path = local_path(place)
        stream = None if path is None else opened(path)
        if stream is None:
            continue
        with stream:
            while block := stream.read(_BLOCK):
                block += stream.readline(_LONGEST_LINE)
                if b'" :' in block or b'"\t:' in block:
                    return None
                null = b" null" if b'": ' in block[: block.find(b"\n")] else b"null"
                for number, start in enumerate(starts):
                    fields, nulls = found[number]
                    found[number] = fields + block.count(start), nulls + block.count(start + null)
    return found


def _look_at(path: Path) -> Look:
    is_exact, is_plain, records, texts, text_of_field = True, True, 0, 0, b""
    try:
        stream = opened(path)
        if stream is None:
            return Look()
        with stream:
            while block := stream.read(_BLOCK):
                block += stream.readline(_LONGEST_LINE)
                if not block.endswith(b"\n"):
                    block = block.rstrip() + b"\n"
                lines = block.count(b"\n")
                are_objects = lines in map(block.count, _OBJECT_ENDS)  # most files need one count
                if not are_objects and lines != sum(map(block.count, (*_OBJECT_ENDS, *_LIST_ENDS))):
                    if block.strip():
                        return Look()
                elif any(pattern.search(block) for pattern in _FOLLOWED) and _has_several(block):
                    return Look()
                text_of_field = text_of_field or (b'": "' if b'": ' in block[: block.find(b"\n")] else b'":"')
                is_exact = is_exact and _is_exact(block)
                records += lines
                texts += block.count(text_of_field)
                is_plain = is_plain and are_objects and _is_plain(block)
    except DAMAGED:
        return Look(may_have_more=False)  # Spark reports the error when it reads the file
    return Look(False, is_exact, records if is_plain else None, texts)


def _has_several(block: bytes) -> bool:
    r"""Return whether a line of a block has several values, or none that is closed.

    Example:
        >>> _has_several(b'{"a":[{"b":1},{"b":"}"}]}\n'), _has_several(b'{"a":[1]},{"a":[2]}\n')
        (False, True)
    """
    if b"\\" in block:
        block = block.replace(b"\\\\", b"").replace(b'\\"', b"")
    left = block.translate(None, _NO_STRUCTURE).replace(b'""', b"")
    if b'"' in left:
        left = _TEXT.sub(b"", left)
    left = _OUTER.sub(b"\n", left)[1:-2]
    for _ in range(_MOST_LEVELS):
        size = len(left)
        left = left.replace(b"{}", b"").replace(b"[]", b"")
        if len(left) == size:
            break
    return bool(left.strip(b"\n"))


def _is_exact(block: bytes) -> bool:
    digits = block.translate(_DIGITS, b"+-")
    is_long = _LONG in digits and any(sign + _LONG in digits for sign in (b":", b"[", b",", b" ", b"\t"))
    return not is_long and _LARGE.search(digits) is None


def _is_plain(block: bytes) -> bool:
    """Return whether objects have no empty ones and lists inside, and no escaped characters."""
    # The first line shows whether there are lists.
    is_flat = _LIST.search(block, 0, block.find(b"\n")) is None
    return is_flat and b"\\u" not in block and _EMPTY_OBJECT.search(block) is None
