"""CSV files as raw texts: each file by its own columns and line ends, united by name.

Files that can be read in the same way are read together. Files without records have no rows; beside others,
neither has one with a header alone. Of files that Python cannot read, those in other systems or
compressions, one query of Spark finds which need a closer look.

Source: the rules of reading, "Two steps" and "Places".
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lakewright.lake.file_probe import DAMAGED, begin_of_text, is_examinable, is_near
from lakewright.lake.files import file_system, files_at
from lakewright.lake.paths import local_path, parent
from lakewright.reader.lines import FirstRecord, Lines, first_record, scan, undecodable_line
from lakewright.reader.source import Begin, FileFault, Form, Source, uri
from lakewright.schema.names import shown
from lakewright.schema.sql import name_sql, text_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake

__all__ = ["CsvGroup", "check_encoding", "names_of", "names_of_header", "read_csv", "union_of"]


_SIZES = (1 << 16, 1 << 22)
"""How much of a file is read to find its first record: the second size if the first one is not enough."""

_AT_ONCE = 16
"""Files whose beginning is read at once: an object store takes tens of milliseconds for each."""


@dataclass(frozen=True, slots=True)
class CsvGroup:
    """CSV files that are read together.

    Attributes:
        first: The values of their first record if it is a header, otherwise as many texts as it has values.
        paths: The files.
        end: What ends a line, where Spark must be told.
        has_breaks: Whether fields may hold what ends a line, so that a file cannot be read in parts.
    """

    first: tuple[str, ...]
    paths: tuple[str, ...]
    end: str | None = None
    has_breaks: bool = False

    @property
    def options(self) -> dict[str, str]:
        """Options of Spark's reader for these files."""
        found = {"multiLine": "true", "unescapedQuoteHandling": "RAISE_ERROR"} if self.has_breaks else {}
        return found if self.end is None else {**found, "lineSep": self.end}


def groups_of(session: SparkSession, paths: Sequence[str], form: Form, begin: Begin) -> list[CsvGroup]:
    """Return the files with records, in groups that can be read together.

    Args:
        session: A session, for files that Python cannot read.
        paths: The files.
        form: How they are written.
        begin: Returns the first bytes of a file.

    Raises:
        FileFault: A file can't be read as it is declared to be written.
    """
    found = _lines(session, paths, form, begin)
    filled = {path: lines for path, lines in found.items() if lines.first}
    if form.header and not all(lines.is_alone for lines in filled.values()):
        filled = {path: lines for path, lines in filled.items() if not lines.is_alone}
    groups: dict[tuple[tuple[str, ...], str | None, bool], list[str]] = {}
    for path, lines in filled.items():
        first = lines.first if form.header else ("",) * len(lines.first)
        groups.setdefault((first, lines.end, lines.has_breaks or not form.has_plain_bytes), []).append(path)
    return [CsvGroup(first, tuple(each), end, breaks) for (first, end, breaks), each in groups.items()]


def _lines(session: SparkSession, paths: Sequence[str], form: Form, begin: Begin) -> dict[str, Lines]:
    near: dict[str, Lines] = {}
    for path in filter(is_near, paths):
        found = scan(local_path(path) or Path(path), form)
        if found is not None:
            near[path] = found
    far = _far_lines(session, [path for path in paths if path not in near], form, begin)
    return {path: near[path] if path in near else far[path] for path in paths}


def names_of(group: CsvGroup, form: Form, *, is_numbered: bool = False) -> tuple[str, ...]:
    """Return the names of the columns of files; those without a header are `_c0`, `_c1`, ….

    Args:
        group: The files.
        form: How they are written.
        is_numbered: Whether a column without a name in a header is called by its number, too.

    Raises:
        FileFault: A header has a name twice, in any case, or none for a column.
    """
    if form.header:
        return names_of_header(group.first, form, group.paths[0], is_numbered=is_numbered)
    return tuple(f"_c{place}" for place in range(len(group.first)))


def names_of_header(
    values: Sequence[str], form: Form, path: str, *, is_numbered: bool = False
) -> tuple[str, ...]:
    """Return the names of the columns that a header names.

    Args:
        values: Its values.
        form: How the file is written.
        path: The file.
        is_numbered: Whether a column without a name is called by its number, such as `_c2`.

    Raises:
        FileFault: It has a name twice, in any case, or none for a column.
    """
    names: list[str] = []
    taken: set[str] = set()
    for place, own in enumerate(values):
        name = own.strip(" \t") if form.trim_names else own
        if not name.strip() and not is_numbered:
            raise FileFault("nameless", path, place=str(place + 1))
        if name and name.lower() in taken:
            raise FileFault("doubled_name", path, name=shown(name))
        taken.add(name.lower())
        names.append(name or f"_c{place}")
    return tuple(names)


def read_csv(
    lake: Lake,
    session: SparkSession,
    source: Source,
    form: Form,
    *,
    corrupt: str | None = None,
    schema_of: Callable[[CsvGroup], str | None] | None = None,
) -> DataFrame:
    """Return the rows of CSV files with all values as texts; a column that a file lacks is null there.

    Args:
        lake: The lake.
        session: A session.
        source: The files.
        form: How they are written.
        corrupt: Column for the text of a record with too many or too few fields, whose other columns don't
            count. Without it, such a record fails the query.
        schema_of: Returns the columns of files as a schema in Spark's SQL, None if Spark is to infer their
            types; by default these are texts.

    Raises:
        LakewrightError: A file can't be read as it is declared to be written, or has a name twice in its
            header, or none for a column.
    """
    from pyspark.sql.types import StructType

    mode = {"mode": "FAILFAST"}
    if corrupt is not None:
        mode = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": corrupt}

    def texts(group: CsvGroup) -> str:
        names = [*names_of(group, form), *(() if corrupt is None else (corrupt,))]
        return ", ".join(f"{name_sql(name)} string" for name in names)

    alike: dict[object, tuple[CsvGroup, str | None]] = {}
    try:
        for group in groups_of(session, source.paths, form, files_at(source.place, lake).begin):
            schema = (schema_of or texts)(group)
            key = (group.first if schema is None else schema, group.end, group.has_breaks)
            known = alike[key][0].paths if key in alike else ()
            alike[key] = replace(group, paths=(*known, *group.paths)), schema
    except FileFault as fault:
        raise source.fault_error(fault, form) from fault
    frames = []
    for group, schema in alike.values():
        # With column pruning, a query over a few columns takes rows with too many fields for right ones.
        own = {**form.options, **group.options, "columnPruning": "false", **mode, **source.options}
        reader = session.read.format("csv").options(**own)
        reader = reader if schema is None else reader.schema(schema)
        frame = reader.load(source.places if len(alike) == 1 else list(map(uri, group.paths)))
        frames.append(frame.toDF(*names_of(group, form, is_numbered=True)) if schema is None else frame)
    return union_of(frames) if frames else session.createDataFrame([], StructType([]))


def union_of(frames: Iterable[DataFrame]) -> DataFrame:
    """Return the rows of all frames; columns are matched by name, and null where a frame lacks them."""
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def _far_lines(session: SparkSession, paths: Sequence[str], form: Form, begin: Begin) -> dict[str, Lines]:
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
    return {path: _far_lines_of(session, path, form, firsts[path], is_odd=path in odd) for path in paths}


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


def _far_lines_of(session: SparkSession, path: str, form: Form, first: FirstRecord, *, is_odd: bool) -> Lines:
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
