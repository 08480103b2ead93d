"""Lines of JSON that may hold more than one value, of which Spark's reader loses all but the first.

A look at the bytes finds the files that may have such lines; only these are read in the exact way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from lakewright.lake.file_probe import DAMAGED, is_near, opened
from lakewright.lake.paths import local_path
from lakewright.reader.source import Source
from lakewright.schema.sql import text_sql

__all__ = ["alone_sql", "may_have_more", "text_of_line"]

_BLOCK = 1 << 20
_END = "lakewright: the end of the line"
# Patterns that begin with one byte are the fastest.
_FOLLOWED = (re.compile(rb"\}[ \t]*[{\[]"), re.compile(rb"\][ \t]*[{\[]"))
_FOLLOWED_BY_COMMA = re.compile(rb"\},[ \t]*\{")
_ENDS = (b"}\n", b"]\n", b"}\r\n", b"]\r\n")


def may_have_more(source: Source, options: Mapping[str, str]) -> bool:
    """Return whether a line of a source may have more than one value; so may files that Python can't read."""
    # Only encodings whose line breaks are of several bytes have this option.
    if "lineSep" in options or not all(map(is_near, source.paths)):
        return True
    return any(_may_have_more(path) for each in source.paths if (path := local_path(each)) is not None)


def _may_have_more(path: Path) -> bool:
    try:
        stream = opened(path)
        if stream is None:
            return True
        with stream:
            rest, is_first = b"", True
            while block := stream.read(_BLOCK):
                block = rest + block
                if _is_odd(block) or (is_first and _has_rest(block.partition(b"\n")[0])):
                    return True
                own = block.rstrip(b" \t\r,")
                rest, is_first = (b"" if own.endswith(b"\n") else block[max(len(own) - 1, 0) :]), False
            return rest.rstrip()[-1:] not in (b"", b"}", b"]")
    except DAMAGED:
        return False  # Spark reports the error when it reads the file


def _is_odd(block: bytes) -> bool:
    """Return whether a value may follow another one in a line of a block, or a line ends with neither."""
    lines = block.count(b"\n")
    # Most files need one count.
    if lines != block.count(_ENDS[0]) and lines != sum(map(block.count, _ENDS)):
        return True
    if any(pattern.search(block) for pattern in _FOLLOWED):
        return True
    return b"[" not in block and _FOLLOWED_BY_COMMA.search(block) is not None


def _has_rest(line: bytes) -> bool:
    """Return whether there is something after the first value of a line. A part of a line has nothing."""
    try:
        text = line.decode("utf-8-sig", errors="replace").strip()
        return json.JSONDecoder().raw_decode(text)[1] < len(text)
    except (ValueError, RecursionError):
        return False


def text_of_line(encoding: str | None) -> str:
    """Return SQL of the text of a line, which Spark's reader of text does not decode."""
    return (
        "value"
        if encoding is None
        else f"ltrim('\ufeff', decode(cast(value as binary), {text_sql(encoding)}))"
    )


def alone_sql(text: str, levels: int) -> str:
    """Return SQL of the variant of a text that is exactly one value; null for others.

    The text is parsed as the first element of a list, of which the second one is a mark.
    """
    mark = f"', \"{_END}\"]'"
    options = f"map('maxNestingDepth', '{levels + 1}')"
    parsed = f"from_json(concat('[', {text}, {mark}), 'array<variant>', {options})"
    is_alone = f"size(x) = 2 and cast(get(x, 1) as string) = '{_END}'"
    return f"get(get(filter(array({parsed}), x -> {is_alone}), 0), 0)"
