"""Lines of CSV files that Python cannot read: those in other systems, and those in other compressions.

One query of Spark finds which of them need a closer look.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lakewright.lake.file_probe import DAMAGED, begin_of_text, is_examinable
from lakewright.lake.files import file_system
from lakewright.lake.paths import local_path, parent
from lakewright.reader.faults import FileFault
from lakewright.reader.first_record import FirstRecord, first_record
from lakewright.reader.form import Form
from lakewright.reader.lines import Lines, scan, undecodable_line
from lakewright.schema.sql import text_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Begin", "check_encoding", "far_lines"]

Begin = Callable[[str, int], bytes]
"""Returns the first bytes of a file, by its path and their number."""

_SIZES = (1 << 16, 1 << 22)
"""How much of a file is read to find its first record: the second size if the first one is not enough."""

_AT_ONCE = 16
"""Files whose beginning is read at once: an object store takes tens of milliseconds for each."""


def far_lines(session: SparkSession, paths: Sequence[str], form: Form, begin: Begin) -> dict[str, Lines]:
    """Return how the lines of files end that Python cannot read.

    Args:
        session: A session.
        paths: The files.
        form: How they are written.
        begin: Returns the first bytes of a file.

    Raises:
        FileFault: A file can't be read as it is declared to be written.
    """
    if not paths:
        return {}

    def first(path: str) -> FirstRecord:
        return _first_of(session, path, form, begin)

    with ThreadPoolExecutor(_AT_ONCE) as workers:
        firsts = dict(zip(paths, workers.map(first, paths), strict=True))
    has_blanks = not form.separator.strip() or any(len(each.values) < 2 for each in firsts.values())
    odd = _odd_files(session, paths, form, has_blanks=has_blanks)
    return {path: _lines(session, path, form, firsts[path], is_odd=path in odd) for path in paths}


def check_encoding(session: SparkSession, paths: Sequence[str], form: Form) -> None:
    """Raise `FileFault` if a file has bytes that its encoding does not have; Spark would replace them."""
    far = []
    for path in paths:
        local = local_path(path)
        if local is None or not is_examinable(local):
            far.append(path)
        elif form.codec is not None and (line := undecodable_line(local, form.codec)) is not None:
            raise FileFault("undecodable", path, line, encoding=form.encoding)
    if far and form.is_utf8:
        _odd_files(session, far, form)


def _lines(session: SparkSession, path: str, form: Form, first: FirstRecord, *, is_odd: bool) -> Lines:
    found = _scan_copy(session, path, form) if is_odd and is_examinable(Path(parent(path)[1])) else None
    return found or Lines(first.values, first.is_alone, None, is_odd)


def _first_of(session: SparkSession, path: str, form: Form, begin: Begin) -> FirstRecord:
    """Return the first record of a file."""
    name = parent(path)[1]
    if not is_examinable(Path(name)):
        lines = session.read.option("__globPaths__", "false").text(path).where("trim(value) <> ''").take(2)
        text = "".join(f"{line[0]}\n" for line in lines)
        return first_record(text, form, is_whole=len(lines) < 2) or FirstRecord((), is_alone=True)
    for size in _SIZES:
        content = begin(path, size)
        try:
            text, is_whole = begin_of_text(content, name, form.codec or "latin-1")
        except DAMAGED:
            return FirstRecord((), is_alone=False)  # Spark reports the error when it reads the file
        found = first_record(text, form, is_whole=is_whole and len(content) < size)
        if found is not None:
            return found
        if len(content) < size:
            return first_record(text, form, is_whole=True) or FirstRecord((), is_alone=False)
    raise FileFault("long_header", path, size=str(_SIZES[-1]))


def _odd_files(
    session: SparkSession, paths: Sequence[str], form: Form, *, has_blanks: bool = False
) -> set[str]:
    """Return the files of which a line has an odd number of quotes, a field left open, or a carriage return.

    These are all if the bytes of a file don't tell.

    Args:
        session: A session.
        paths: The files.
        form: How they are written.
        has_blanks: Whether a line that has nothing but spaces counts, too.

    Raises:
        FileFault: A line has bytes that are not UTF-8.
    """
    if not form.has_plain_bytes:
        return set(paths)
    reader = session.read.option("__globPaths__", "false").option("lineSep", form.line_end or "\n")
    quote = text_sql(form.quote)
    conditions = ["contains(trim(trailing '\\r' from value), '\\r')" if form.line_end is None else "false"]
    if has_blanks:
        conditions.append("value rlike '^[\\\\t-\\\\r ]+$' and value <> '\\r'")
    if form.quote:
        conditions.append(f"octet_length(value) % 2 <> octet_length(replace(value, {quote})) % 2")
        mark = text_sql(form.separator + form.quote)
        last = f"substring_index(value, {mark}, -1)"
        conditions.append(f"contains(value, {mark}) and not contains({last}, {quote})")
        conditions.append("contains(value, '\\0')")
    if form.escape not in ("", form.quote):
        conditions.append(f"contains(value, {text_sql(form.escape)})")
    invalid = "not is_valid_utf8(value)" if form.is_utf8 else "false"
    found = (
        reader.text(list(paths))
        .selectExpr("input_file_name() as file", f"{invalid} as invalid", f"{' or '.join(conditions)} as odd")
        .where("invalid or odd")
        .groupBy("file")
        .agg({"invalid": "max"})
        .collect()
    )
    known = {_plain(path): path for path in paths}
    for file, is_invalid in found:
        if is_invalid:
            raise FileFault("undecodable", known.get(_plain(file), file), encoding=form.encoding)
    odd = {known.get(_plain(file)) for file, _ in found}
    # A file whose path Spark writes in another way must not be lost.
    return set(paths) if None in odd else {each for each in odd if each is not None}


def _plain(path: str) -> str:
    """Return a path without its scheme, as Spark and we both write it."""
    return unquote(path.partition(":")[2] if ":/" in path else path).lstrip("/")


def _scan_copy(session: SparkSession, path: str, form: Form) -> Lines | None:
    """Return how the lines of a file end, of which a temporary copy is made if it is elsewhere."""
    local = local_path(path)
    if local is not None:
        return scan(local, form)
    system, place = file_system(session, path)
    jvm: Any = session._jvm
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy").with_suffix(Path(path).suffix)
        system.copyToLocalFile(False, place, jvm.org.apache.hadoop.fs.Path(f"file://{copy}"), True)
        try:
            return scan(copy, form)
        except FileFault as fault:
            raise FileFault(fault.code, path, fault.line, **fault.given) from fault
