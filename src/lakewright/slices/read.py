"""Reading of a slice: exactly its files, with the options and types that its format needs.

Source: rules of entities, "Slices"; `processing-strategies.md`, "Behavior" (reads the source slice);
RFC 4180, section 2 (line breaks inside quotes).
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright.errors import SliceError
from lakewright.lake.file_probe import (
    is_near,
    marked_encoding,
    quoted_line_ends,
    undecodable_line,
)
from lakewright.lake.files import files_at
from lakewright.lake.parquet_footer import schema_fingerprint
from lakewright.lake.paths import local_path
from lakewright.manifest.payload import MAY_SKIP
from lakewright.reader.avro import read_avro
from lakewright.reader.compression import check_compression, first_bytes
from lakewright.reader.content import with_content
from lakewright.reader.folders import folder_columns, with_folder_columns
from lakewright.reader.parquet import read_parquet
from lakewright.reader.source import Source, SourceFile
from lakewright.schema.sql import name_sql, text_sql
from lakewright.slices.json_columns import KnownColumns
from lakewright.slices.read_json import read_json
from lakewright.transform.bad_rows import CORRUPT, NO_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakewright.lake.lake import Lake
    from lakewright.slices.bronze import Slice
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.slice_format import SliceFormat

__all__ = ["CORRUPT", "read_slice", "read_together", "same_columns", "source_of"]

_TEXTS = ("csv", "json")

_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./-]+")
"""Paths that are the same in a URI; a name with `=` may be that of a partition."""

_LISTING = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_MOST_LISTED = 1_000_000
"""Local folders and files, at most, that the driver lists by itself; it takes 0.1 ms for one."""

_OPTIONS: dict[str, dict[str, str]] = {
    "csv": {"mode": "FAILFAST", "enforceSchema": "false"},
    "json": {"mode": "FAILFAST"},
    "orc": {},
}

# With column pruning, a query over a few columns takes rows with too many fields for right ones.
_PERMISSIVE = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, "columnPruning": "false"}


def source_of(slice_: Slice, kind: str) -> Source:
    """Return the files of a slice, of one format, as what is read together."""
    return Source(
        label=f"the slice {slice_.name}",
        place=slice_.path,
        files=tuple(SourceFile(file.name, file.size) for file in slice_.files),
        kind=kind,
        is_folder=slice_.is_folder,
        details={"path": slice_.path},
    )


def read_slice(
    lake: Lake,
    session: SparkSession,
    slice_: Slice,
    entity: Entity,
    *,
    others: Sequence[Slice] = (),
    known: KnownColumns | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> DataFrame:
    """Return the rows of a slice, lazily; columns of several files are merged by name.

    If the entity puts bad rows aside, rows of text files that do not parse are in the column `CORRUPT`.

    Args:
        lake: The lake.
        session: A strict session.
        slice_: The slice.
        entity: The entity.
        others: Slices with the same columns that are read with it; see `same_columns`.
        known: What is known of the columns of JSON, see `known_columns`; by default, that there is no table.
        note: Receives what a user must know of columns that are left out.

    Raises:
        SliceError: A quote in a CSV file is not closed, a text file has bytes that its encoding does not
            have, or a file is compressed in another way than its name says.
    """
    source = source_of(slice_, entity.settings.slice_format.kind)
    filled = source.only(file for file in source.files if file.size)
    if source.kind in _TEXTS:
        firsts = first_bytes(source, files_at(source.place, lake).begin)
        check_compression(source, firsts)
        filled = with_content(source, firsts)
    if not filled.files and source.kind == "csv" and (empty := _without_rows(session, entity)) is not None:
        return empty
    source = filled if filled.files else source
    if source.kind == "parquet":
        # By default a job of as many tasks as there are files lists them.
        session.conf.set(_LISTING, str(_MOST_LISTED if source.is_local else 32))
        names = (*(each.source for each in entity.columns), *entity.names_with_values)
        places, keys = [each.path for each in others], entity.business_keys
        frame = read_parquet(lake, session, source, others=places, wanted=names, keys=keys, note=note)
        return with_folder_columns(frame, source)
    if source.kind == "avro":
        return with_folder_columns(read_avro(lake, session, source), source)
    return with_folder_columns(_read(session, slice_, source, entity, known=known), source)


def _without_rows(session: SparkSession, entity: Entity) -> DataFrame | None:
    """Return a frame without rows, with the columns that an entity declares, as texts; None without any."""
    columns = [each.source for each in entity.columns if not (each.is_calculated or each.optional)]
    empty = session.range(0).selectExpr(*(f"cast(null as string) as {name_sql(name)}" for name in columns))
    return empty if columns else None


def _read(
    session: SparkSession,
    slice_: Slice,
    source: Source,
    entity: Entity,
    *,
    known: KnownColumns | None,
) -> DataFrame:
    """Return the rows of the files of a slice, without the columns of its folders."""
    form = entity.settings.slice_format
    # By default a job of as many tasks as there are files lists them.
    session.conf.set(_LISTING, str(_MOST_LISTED if source.is_local else 32))
    options = _options(session, slice_, source, form)
    session.conf.set("spark.sql.legacy.javaCharsets", "false" if form.is_of_spark else "true")
    if entity.settings.on_bad_rows == "quarantine" and form.kind in _TEXTS:
        frame = _read_with_corrupt_rows(session, source, options)
        options |= _PERMISSIVE
    else:
        frame = session.read.format(form.kind).options(**options).load(source.places)
    if form.kind == "json":
        known = known or KnownColumns()
        return read_json(session, slice_, entity, frame, options=options, known=known)
    return frame


def read_together(
    lake: Lake,
    session: SparkSession,
    slices: Sequence[Slice],
    entity: Entity,
    *,
    note: Callable[[str], None] = lambda _: None,
) -> tuple[DataFrame, str]:
    """Return the rows of slices for which `same_columns` gives the same text, lazily.

    Returns:
        The rows, and SQL of the position of a row's slice among these; a frame that is made of projections
        and filters of the rows can use it.
    """
    frame = read_slice(lake, session, slices[0], entity, others=slices[1:], note=note)
    places = {
        text_sql(path.lstrip("/")): position
        for position, slice_ in enumerate(slices)
        for path in slice_.paths
    }
    files = ", ".join(places)
    positions = ", ".join(map(str, places.values()))
    file = "trim(leading '/' from substring(input_file_name(), 6))"  # after `file:`
    unknown = f"raise_error(concat('the file ', {file}, ' is of no slice'))"
    # A file whose path Spark writes in another way must not be lost.
    found = f"map_from_arrays(array({files}), array({positions}))[{file}]"
    return frame, f"coalesce({found}, {unknown})"


def same_columns(slice_: Slice, entity: Entity) -> str | None:
    """Return a text that is equal for slices that can be read together; None for one that cannot.

    These are local Parquet files with the same columns, and with names that no file system writes in another
    way.
    """
    if entity.settings.slice_format.kind != "parquet" or entity.settings.on_bad_rows == "quarantine":
        return None
    marks = set()
    for place in slice_.paths:
        path = local_path(place)
        if path is None or not _PLAIN_PATH.fullmatch(str(path)):
            return None
        try:
            marks.add(schema_fingerprint(path))
        except (ValueError, OSError):
            return None  # Spark reports the error when it reads the file
    folders = sorted(folder_columns(source_of(slice_, "parquet")).values(), key=sorted)
    return f"{marks.pop()} {list(map(sorted, folders))}" if len(marks) == 1 else None


def _read_with_corrupt_rows(session: SparkSession, source: Source, options: Mapping[str, str]) -> DataFrame:
    """Return the rows of a text file; the text of those that do not parse is in the column `CORRUPT`."""
    from pyspark.sql.types import StringType

    reader = session.read.format(source.kind).options(**options)
    if source.kind == "csv":
        schema = reader.load(source.places).schema.add(CORRUPT, StringType())
        return reader.options(**_PERMISSIVE).schema(schema).load(source.places)
    frame = reader.options(**_PERMISSIVE).load(source.places)
    if frame.columns != [CORRUPT]:
        return frame
    return reader.options(**_PERMISSIVE).schema(f"{CORRUPT} string, {NO_COLUMN} string").load(source.places)


def _options(session: SparkSession, slice_: Slice, source: Source, form: SliceFormat) -> dict[str, str]:
    options = {**source.options, **_OPTIONS[form.kind], **form.options}
    if form.kind in _TEXTS:
        local = [path for path in source.paths if is_near(path)]
        remote = [path for path in source.paths if path not in local]
        _check_decodes(slice_, local, form)
        has_odd_lines = bool(remote) and form.is_utf8 and _has_odd_lines(session, slice_, remote, form)
        if form.kind == "csv":
            options |= quote_options(session, slice_, form, has_odd_lines=has_odd_lines)
    if len(source.files) > 1 and form.kind == "orc":
        options["mergeSchema"] = "true"
    return options


def _check_decodes(slice_: Slice, paths: Sequence[str], form: SliceFormat) -> None:
    """Raise `SliceError` if a file has bytes that its encoding does not have; Spark would replace them."""
    for path in paths:
        line = undecodable_line(Path(path), form.encoding)
        if line is not None:
            marked = marked_encoding(Path(path))
            raise _undecodable_error(slice_, f"{path}, line {line}", form.encoding, form.kind, marked)


def _undecodable_error(
    slice_: Slice, place: str, encoding: str, kind: str, marked: str | None = None
) -> SliceError:
    """Return the error; `marked` is the encoding that the file's byte order mark tells, if it has one."""
    return SliceError(
        f"the slice {slice_.name} can't be read: {place}: there are bytes that are not {encoding}",
        remedy=f"Name the encoding of the files in the entity's settings (format: {{kind: {kind}, encoding: "
        f"{marked or 'windows-1252'}}}), or deliver the slice again; then resolve the item.",
        details={"path": slice_.path, "encoding": encoding},
    )


def quote_options(
    session: SparkSession, slice_: Slice, form: SliceFormat, *, has_odd_lines: bool
) -> dict[str, str]:
    """Return the CSV options to read line breaks inside quotes.

    Without such line breaks no options are needed, and Spark can read one file in several tasks.

    Args:
        session: The session.
        slice_: The slice.
        form: Its format.
        has_odd_lines: Whether a file that Python cannot read has a line with an odd number of quotes.

    Raises:
        SliceError: A quote is not closed at the end of its field, or lines have different endings.
    """
    if not form.quote:
        return {"multiLine": "true"} if form.is_wide else {}
    whole = {"multiLine": "true", "unescapedQuoteHandling": "RAISE_ERROR"}
    if not form.has_plain_quotes or len(form.separator.encode()) > 1:
        return whole  # only Spark knows these quotes
    ends: set[str] = set()
    files = {path: local_path(path) for path in slice_.paths}
    if not has_odd_lines and all(local is None for local in files.values()):
        return {}
    for path, local in files.items():
        try:
            own = (
                _far_line_ends(session, path, form.separator)
                if local is None
                else quoted_line_ends(local, form.separator)
            )
        except ValueError as error:
            raise SliceError(
                f"the slice {slice_.name} can't be read: {path}: {error}",
                remedy="Close its quotes, double those inside them, then resolve the item.",
                details={MAY_SKIP: True},
            ) from error
        if own is None:
            return whole
        ends |= own
    if len(ends) > 1:
        raise SliceError(
            f"the slice {slice_.name} has line breaks inside quotes, and lines with different endings: "
            f"{', '.join(sorted(map(repr, ends)))}",
            remedy="Use one kind of line ending, then resolve the item.",
            details={MAY_SKIP: True},
        )
    # If Spark knows the line ending, it keeps other line breaks inside quotes.
    return {**whole, "lineSep": ends.pop()} if ends else {}


def _has_odd_lines(session: SparkSession, slice_: Slice, paths: Sequence[str], form: SliceFormat) -> bool:
    """Return whether a line of files that Python cannot read has an odd number of quotes, found by a query.

    Raises:
        SliceError: A line has bytes that are not UTF-8.
    """
    lines = session.read.option("__globPaths__", "false").text(list(paths))
    odd = "length(value) % 2 <> length(replace(value, '\"')) % 2" if form.kind == "csv" else "false"
    checked = lines.selectExpr(
        "if(is_valid_utf8(value), null, input_file_name()) as invalid", f"{odd} as odd"
    )
    row = checked.selectExpr("min(invalid) as invalid", "count_if(odd) as odd").first()
    if row is not None and row["invalid"] is not None:
        raise _undecodable_error(slice_, str(row["invalid"]), "UTF-8", form.kind)
    return row is not None and row["odd"] > 0


def _far_line_ends(session: Any, path: str, separator: str) -> frozenset[str] | None:
    """Return the line endings in a remote file, of which a temporary copy is made."""
    place = session._jvm.org.apache.hadoop.fs.Path(path)
    system = place.getFileSystem(session._jsc.hadoopConfiguration())
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy").with_suffix(Path(path).suffix)
        system.copyToLocalFile(False, place, session._jvm.org.apache.hadoop.fs.Path(f"file://{copy}"), True)
        return quoted_line_ends(copy, separator)
