"""Reading of files of any format to raw values, with the columns of their folders.

Text files whose bytes are not what their names say are refused: Spark decompresses by names alone. Files
without content have no rows, and say nothing of columns. Folders such as `plant=007` are columns of texts: a
type inferred from them would depend on which values one slice has, and would change some.

Source: the rules of reading, "Two steps" and "Places"; Hive's names of partitions, in which signs are
written as `%2F`.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lakewright.lake.file_probe import ARCHIVES, DAMAGED, begin_of_text, compression_of, named_compression
from lakewright.lake.frames import empty_frame
from lakewright.lake.partition import NULL_FOLDER
from lakewright.lake.paths import FileEntry, is_stored
from lakewright.reader.avro import read_avro
from lakewright.reader.json import read_json, with_inferred_types
from lakewright.reader.lines import begin_record, check_encoding, ends_of_lines
from lakewright.reader.orc import read_orc
from lakewright.reader.parquet import read_footers, read_parquet
from lakewright.reader.source import TEXTS, FileFault, Form, Reading, Source, uri
from lakewright.schema.conversion import convert
from lakewright.schema.fault import Owner, Reason, misfit_sql, placed_sql, raised_sql
from lakewright.schema.names import shown
from lakewright.schema.rules import ValueRules
from lakewright.schema.spark import type_of
from lakewright.schema.sql import name_sql, text_sql
from lakewright.schema.types import TEXT
from lakewright.spark.engine import analyzed
from lakewright.spark.functions import functions
from lakewright.transform.bad_rows import NO_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.lake.files import Files
    from lakewright.schema.types import Type


_LISTING = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_MOST_LISTED = 1_000_000
"""Local folders and files, at most, that the driver lists by itself; it takes 0.1 ms for one."""

_SUFFIXES: Mapping[str, str] = {"gzip": ".gz", "bzip2": ".bz2", "zstd": ".zst"}
_BLOCKS = frozenset({"snappy", "lz4"})
_LARGEST_BLOCK = 1 << 26

# The mark of UTF-32 begins with that of UTF-16.
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_PLAIN = re.compile(r"[A-Za-z0-9_.=/-]+")
"""Names that are the same in the URI of a file."""
_SCHEME = "[A-Za-z][A-Za-z0-9+.-]*:/+"
_SCALARS = frozenset(("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "boolean"))
_SCALARS |= {"string", "date", "timestamp", "timestamp_ntz"}


def read_files(
    reading: Reading,
    *,
    schema_of: Callable[[CsvGroup], str | None] | None = None,
    schema: str | None = None,
    is_by_spark: bool = False,
) -> DataFrame:
    """Return the rows of files in raw values, lazily; columns of several files are merged by name.

    Args:
        reading: The files.
        schema_of: Returns the columns of CSV files; see `read_csv`.
        schema: The columns of lines of text, and of JSON that Spark converts; None if it is to infer them.
        is_by_spark: Whether Spark converts the values of JSON.

    Raises:
        LakewrightError: A file can't be read as it is declared to be written, or is compressed in another way
            than its name says; or a column has types in two files that no type holds.
    """
    reading.source.check_names()
    session, source = reading.session, reading.source.visible
    filled = source.only(file for file in source.files if file.size)
    if source.kind in (*TEXTS, "text"):
        firsts = source.first_bytes(reading.system.begin)
        check_compression(source, firsts)
        filled = with_content(source, firsts) if source.kind in TEXTS else filled
    if source.kind in TEXTS and not filled.files:
        return reading.without_rows
    reading = reading.of(filled if filled.files else source)
    # By default a job of as many tasks as there are files lists them.
    session.conf.set(_LISTING, str(_MOST_LISTED if source.is_local else 32))
    session.conf.set("spark.sql.legacy.javaCharsets", "false" if reading.form.is_of_spark else "true")
    if source.kind == "csv":
        frame = read_csv(reading, schema_of)
    elif source.kind == "text" or is_by_spark:
        frame = reading.load(schema=schema)
    else:
        frame = _READERS[source.kind](reading)
    return with_folder_columns(frame, reading.source)


@dataclass(frozen=True, slots=True)
class CsvGroup:
    """CSV files that are read together.

    Attributes:
        first: The values of their first record if it is a header, otherwise as many texts as it has values.
        paths: The files.
        end: What ends a line, where Spark needs it.
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


def groups_of(reading: Reading) -> list[CsvGroup]:
    """Return the files with records, in groups that can be read together.

    Raises:
        FileFault: A file can't be read as it is declared to be written.
    """
    form, found = reading.form, ends_of_lines(reading)
    filled = {path: lines for path, lines in found.items() if lines.first}
    if form.header and not all(lines.is_alone for lines in filled.values()):
        filled = {path: lines for path, lines in filled.items() if not lines.is_alone}
    groups: dict[tuple[tuple[str, ...], str | None, bool], list[str]] = {}
    for path, lines in filled.items():
        first = lines.first if form.header else ("",) * len(lines.first)
        groups.setdefault((first, lines.end, lines.has_breaks or not form.has_plain_bytes), []).append(path)
    return [CsvGroup(first, tuple(each), end, breaks) for (first, end, breaks), each in groups.items()]


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


def column_names(system: Files, source: Source, form: Form) -> list[str] | None:
    """Return the names of the columns in files, found without Spark; None if only Spark knows them.

    Args:
        system: Where the files are.
        source: The files.
        form: How they are written.

    Raises:
        OSError: A file can't be read.
        ValueError: A CSV file has no header, or one that has a name twice or none for a column.
        LakewrightError: A Parquet file is damaged.
    """
    if not (source.is_local or is_stored(source.place)):
        return None
    if source.kind == "parquet":
        footers = read_footers(system, source)
        return None if footers is None else [each.name for _, own in footers for each in own.columns.fields]
    names: list[str] = []
    for path in source.paths:
        first = begin_record(system, path, form) if form.kind == "csv" and form.header else None
        if first is None:
            return None
        if not first.values:
            raise ValueError(f"{path} has no line with the names of the columns")
        if any("\ufffd" in value for value in first.values):
            raise FileFault("undecodable", path, encoding=form.encoding)
        names += names_of_header(first.values, form, path)
    return names


def read_csv(reading: Reading, schema_of: Callable[[CsvGroup], str | None] | None = None) -> DataFrame:
    """Return the rows of CSV files with all values as texts; a column that a file lacks is null there.

    Args:
        reading: The files. Its column `corrupt` is for records with too many or too few fields, whose other
            columns don't count.
        schema_of: Returns the columns of files as a schema in Spark's SQL, None if Spark is to infer their
            types; by default these are texts.

    Raises:
        LakewrightError: A file can't be read as it is declared to be written, or has a name twice in its
            header, or none for a column.
    """
    form, corrupt = reading.form, reading.corrupt
    mode = {"mode": "FAILFAST"}
    if corrupt is not None:
        mode = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": corrupt}

    def texts(group: CsvGroup) -> str:
        names = [*names_of(group, form), *(() if corrupt is None else (corrupt,))]
        return ", ".join(f"{name_sql(name)} string" for name in names)

    alike: dict[object, tuple[CsvGroup, str | None]] = {}
    try:
        for group in groups_of(reading):
            schema = (schema_of or texts)(group)
            key = (group.first if schema is None else schema, group.end, group.has_breaks)
            known = alike[key][0].paths if key in alike else ()
            alike[key] = replace(group, paths=(*known, *group.paths)), schema
    except FileFault as fault:
        raise reading.source.fault_error(fault, form) from fault
    frames = []
    for group, schema in alike.values():
        places = [] if len(alike) == 1 else list(map(uri, group.paths))
        # With column pruning, a query over a few columns takes rows with too many fields for right ones.
        defaults = {**group.options, "columnPruning": "false", **mode}
        frame = reading.load(places, schema=schema, defaults=defaults)
        frames.append(frame.toDF(*names_of(group, form, is_numbered=True)) if schema is None else frame)
    return union_of(frames) if frames else empty_frame(reading.session, ())


def union_of(frames: Iterable[DataFrame]) -> DataFrame:
    """Return the rows of all frames; columns are matched by name, and null where a frame lacks them."""
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def _read_json(reading: Reading) -> DataFrame:
    """Return the records of JSON: raw where types are known, else in inferred types."""
    try:
        check_encoding(reading)
    except FileFault as fault:
        raise reading.source.fault_error(fault, reading.form) from fault
    frame = read_json(reading)
    if frame.columns == [reading.corrupt]:
        return frame.selectExpr("*", f"cast(null as string) as {NO_COLUMN}")
    return with_inferred_types(frame, reading.known)


_READERS: Mapping[str, Callable[[Reading], DataFrame]] = {
    "json": _read_json,
    "parquet": read_parquet,
    "avro": read_avro,
    "orc": read_orc,
}


def check_compression(source: Source, firsts: Mapping[str, bytes]) -> None:
    """Raise the source's error if Spark would not decompress a text file as it is compressed.

    Args:
        source: The source.
        firsts: The first bytes of its files, by their names.
    """
    for file in source.files:
        fault = _compression_fault(file, firsts.get(file.name, b""))
        if fault is not None:
            why, remedy = fault
            path = source.path(file)
            raise source.error(f"{path} {why}", remedy, may_skip=True)


def _compression_fault(file: FileEntry, first: bytes) -> tuple[str, str] | None:
    """Return what a file is in spite of its name, and how it must be delivered; None if it is as named."""
    found, named = compression_of(first), named_compression(file.name)
    if found in ARCHIVES:
        return f"is a {found} archive", "Deliver the files in it instead of the archive"
    if found == named and found not in _BLOCKS:
        return None
    own = file.name.rpartition("/")[2]
    if found is not None:
        suffix = _SUFFIXES.get(found)
        if suffix is None:
            return f"is compressed with {found}, which can't be read", "Deliver it compressed with gzip"
        plain = own.rpartition(".")[0] if named is not None else own
        return (
            f"is compressed with {found}, which its name does not say",
            f"Deliver it as {plain}{suffix}",
        )
    if named is None or not first or not _is_plain(first, named, file.size):
        return None
    return f"is not compressed with {named}, as its name says", f"Deliver it as {own.rpartition('.')[0]}"


def _is_plain(first: bytes, named: str, size: int) -> bool:
    """Return whether bytes without a known mark aren't compressed in a way that has none."""
    if named == "deflate":
        return first[0] & 0x0F != 8 or int.from_bytes(first[:2]) % 31 != 0
    if named in _BLOCKS:  # Hadoop's own blocks begin with their lengths
        whole, part = int.from_bytes(first[:4]), int.from_bytes(first[4:8])
        return len(first) < 8 or whole > _LARGEST_BLOCK or part > size - 8
    return True


def with_content(source: Source, firsts: Mapping[str, bytes]) -> Source:
    """Return a source of text files without those that have no content.

    These have no bytes, or only a byte order mark and line breaks.

    Args:
        source: The source.
        firsts: The first bytes of its files, by their names.
    """

    def has_content(file: FileEntry) -> bool:
        first = firsts.get(file.name, b"")
        if not file.size or len(first) < file.size:
            return file.size > 0
        try:
            text, is_whole = begin_of_text(first, file.name, "latin-1")
        except DAMAGED:
            return True  # reading it raises the error
        for mark in _MARKS:
            text = text.removeprefix(mark.decode("latin-1"))
        return not is_whole or bool(text.strip("\r\n\0"))

    return source.only(filter(has_content, source.files))


def folder_values(name: str) -> dict[str, str | None]:
    """Return the columns of the folders in a file's path, with their values.

    Raises:
        ValueError: A folder's name is not text, or two of them are of one column.

    Example:
        >>> folder_values("plant=007/05/at=12%3A30/code=__HIVE_DEFAULT_PARTITION__/part=1.csv")
        {'plant': '007', 'at': '12:30', 'code': None}
    """
    return {column: value for _, column, value in _folder_parts(name)}


def _folder_parts(name: str) -> Iterator[tuple[str, str, str | None]]:
    """Yield each column of the folders in a path: as the folder writes its name, that name, and the value."""
    taken = set()
    for folder in name.split("/")[:-1]:
        written, sign, text = folder.partition("=")
        if not (written and sign):
            continue
        try:
            column, value = unquote(written, errors="strict"), unquote(text, errors="strict")
        except UnicodeDecodeError:
            raise ValueError(f"the name of the folder {folder} has signs of an encoding but UTF-8") from None
        if column.lower() in taken:
            raise ValueError(f"{name}: two folders are of the column {column!r}")
        taken.add(column.lower())
        yield written, column, None if text == NULL_FOLDER else value


def folder_columns(source: Source) -> Mapping[str, frozenset[str]]:
    """Return the columns of a source's folders, with all ways in which folders write their names.

    Raises:
        LakewrightError: A folder's name is not text, or a path has two folders of one column.
    """
    spelled: dict[str, set[str]] = {}
    names: dict[str, str] = {}
    for folder in sorted({file.name.rpartition("/")[0] for file in source.files if "=" in file.name}):
        try:
            for written, column, _ in _folder_parts(f"{folder}/"):
                spelled.setdefault(names.setdefault(column.lower(), column), set()).add(written)
        except ValueError as error:
            raise source.error(str(error), "Rename the folder") from error
    return {column: frozenset(texts) for column, texts in spelled.items()}


def with_folder_columns(frame: DataFrame, source: Source) -> DataFrame:
    """Return the rows of a source with the columns of its folders.

    A column that the files have too keeps their values, and the query fails if a folder has another one. A
    file without a value has that of its folder.

    Args:
        frame: The rows, as a scan or projections of one.
        source: The source.
    """
    columns = folder_columns(source)
    if not columns:
        return frame
    file = file_sql(frame)
    own = {field.name.lower(): field for field in frame.schema.fields}
    found = []
    for column, written in columns.items():
        value = _value_sql(file, source, written)
        field = own.get(column.lower())
        kind = "void" if field is None else field.dataType.simpleString()
        if field is None or kind == "void":
            found.append((column if field is None else field.name, value))
            continue
        if kind.partition("(")[0] not in _SCALARS:
            raise source.error(
                f"column {column!r} is of type {kind} in the files, and folders have its values, too",
                "Rename the column in the files, or the folders",
            )
        found.append((field.name, _checked_sql(field.name, type_of(field.dataType), value, file)))
    added = {name: functions.expr(sql) for name, sql in found}
    return frame.withColumns(added) if added else frame


def file_sql(frame: DataFrame) -> str:
    """Return SQL of the path of a row's file, with which a filter spares Spark the other files if it can.

    It can in rows of one scan, unless they have a column that hides Spark's.
    """
    from pyspark.errors import AnalysisException

    if not any(name.lower() == "_metadata" for name in frame.columns):
        try:
            analyzed(frame.selectExpr("_metadata.file_path"))
        except AnalysisException:  # they are of several scans
            return "input_file_name()"
        return "_metadata.file_path"
    return "input_file_name()"


def path_sql(file: str) -> str:
    """Return SQL of the path of a file as people write it, from SQL of the one that Spark has."""
    return f"regexp_replace({_decoded_sql(file)}, '^file:/+', '/')"


def _decoded_sql(path: str) -> str:
    """Return SQL of a path without codes for signs; `url_decode` takes `+` for a space."""
    return f"url_decode(replace({path}, '+', '%2B'))"


def _checked_sql(column: str, kind: Type, folder: str, file: str) -> str:
    """Return SQL of a file's own value, or of its folder's where it has none; a query fails if they differ.

    The file is SQL of its path as Spark has it.
    """
    own, place, owner = name_sql(column), path_sql(file), Owner.SLICE
    of_folder = convert(folder, TEXT, kind, column=column, rules=ValueRules(owner=owner)).placed(place)
    shown = f"cast({own} as string)"
    fault = misfit_sql(shown, Reason.NOT_AS_FOLDER, column=column, target=kind.ddl, owner=owner)
    return (
        f"case when {own} is null then {of_folder.strict} "
        f"when ({folder}) is null or {own} = {of_folder.sql} then {own} "
        f"else cast({raised_sql(placed_sql(fault, place))} as {kind.ddl}) end"
    )


def _value_sql(file: str, source: Source, written: Iterable[str]) -> str:
    """Return SQL of the value that a row's folder has of a column; null if there is no such folder."""
    marks = tuple(f"/{each}=" for each in written)
    if all(_is_plain_once(f"/{each.name}", marks) for each in source.files):
        value = f"substring_index(substring_index({file}, {text_sql(marks[0])}, -1), '/', 1)"
        return f"nullif({value}, {text_sql(NULL_FOLDER)})"
    path = _decoded_sql(file)
    parts = [part for part in re.sub(f"^{_SCHEME}", "", source.place).split("/") if part]
    below = f"regexp_replace({path}, {text_sql(f'^{_SCHEME}(?:[^/]+/+){{{len(parts)}}}')}, '/')"
    names = "|".join(sorted(map(re.escape, written)))
    folder = f"regexp_substr({below}, {text_sql(f'/(?:{names})=[^/]*(?=/)')})"
    value = f"substring({folder}, instr({folder}, '=') + 1)"
    lone = text_sql("%(?![0-9A-Fa-f]{2})")  # a percent sign that encodes nothing
    text = _decoded_sql(f"regexp_replace({value}, {lone}, '%25')")
    return f"if({value} = {text_sql(NULL_FOLDER)}, null, {text})"


def _is_plain_once(path: str, marks: Sequence[str]) -> bool:
    """Return whether a file's path shows the only folder of a column as it is, which is the usual case."""
    is_once = (
        len(marks) == 1 and path.count(marks[0]) == 1 and not path.rpartition("/")[2].startswith(marks[0][1:])
    )
    return is_once and _PLAIN.fullmatch(path) is not None
