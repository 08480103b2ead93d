"""How the files of a `file` relation are read: CSV by the columns that each file has, and all strictly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakewright.errors import TargetError
from lakewright.lake.columns import column, fields_of, find_column, literal, reader_schema
from lakewright.lake.file_probe import PROBE
from lakewright.lake.files import Files, files_at
from lakewright.lake.paths import join, parent
from lakewright.reader.compression import compression_fault
from lakewright.reader.csv import CsvGroup, groups_of, names_of, read_group
from lakewright.reader.faults import FileFault
from lakewright.reader.form import TEXTS, Form, form_of_options
from lakewright.reader.source import SourceFile
from lakewright.relations.csv_columns import columns_of_file, header_doubt
from lakewright.relations.file_values import FileValues, are_raw
from lakewright.schema.shape import plain_type
from lakewright.spec.models.fields import Field, PartitionField, parse_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader

    from lakewright.workspace.workspace import Workspace

__all__ = ["FileReader", "files_below"]

_AT_ONCE = 16
"""Files whose beginning is read at once: an object store takes tens of milliseconds for each."""

_TEXT = parse_type("string")
_UTC = ("UTC", "Etc/UTC", "GMT", "Z")

_CORRECT_HEADER = "Correct the header; or declare a schema, whose names columns then have by position."
_CORRECT_FILE = (
    "Correct the file, or declare how the files are written: the option `encoding`; the option `escape` for "
    "quotes after a backslash, or an empty `quote` for none."
)


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads files of one format.

    Attributes:
        label: The relation as messages name it.
        options: Spark's options for the format.
        partitions: The relation's partition columns, which files have in their paths.
    """

    label: str
    format: str
    options: Mapping[str, str]
    partitions: Sequence[PartitionField]

    def frames(
        self, workspace: Workspace, place: str, fields: tuple[Field, ...] | None
    ) -> Iterator[DataFrame]:
        """Yield the rows of the files at a place: one frame, or one for each group of CSV files."""
        files = files_at(place, workspace.lake)
        found = files.matching(place)
        if not found:
            raise TargetError(
                f"{self.label}: there is nothing at {place}",
                remedy="Check the location; the CREATE phase of a relation target creates it.",
            )
        if fields is None and not any(True for path in found for _ in files.listed(path)):
            raise TargetError(
                f"{self.label}: there is no file at {place} to infer its columns from",
                remedy="Declare its schema.",
            )
        filled = {path: size for place in found for path, size in files_below(files, place) if size}
        if self.format in (*TEXTS, "text"):
            self._check_compression(files, filled)
        if _folders(found, filled) and not _folder_columns(found, filled):
            # Spark reads no files in folders of a folder that are not those of partitions.
            reader = replace(self, options={"recursiveFileLookup": "true", **self.options})
        else:
            reader = self
        yield from reader._frames(workspace, files, found, tuple(filled), fields)

    def _frames(
        self,
        workspace: Workspace,
        files: Files,
        found: Sequence[str],
        paths: Sequence[str],
        fields: tuple[Field, ...] | None,
    ) -> Sequence[DataFrame]:
        frames: list[DataFrame] = []
        if self.format == "csv":
            frames = self._csv_frames(workspace, found, self._groups(workspace, files, paths), fields)
        return frames or [self._read(workspace, found, fields)]

    def _check_compression(self, files: Files, sizes: Mapping[str, int]) -> None:
        """Raise `TargetError` if Spark would not decompress a file as it is compressed."""
        with ThreadPoolExecutor(_AT_ONCE) as workers:
            firsts = workers.map(lambda path: files.begin(path, PROBE), sizes)
            for (path, size), first in zip(sizes.items(), firsts, strict=True):
                fault = compression_fault(SourceFile(path, size), first)
                if fault is not None:
                    why, remedy = fault
                    raise TargetError(f"{self.label} can't be read: {path} {why}", remedy=f"{remedy}.")

    def _groups(self, workspace: Workspace, files: Files, paths: Sequence[str]) -> list[CsvGroup]:
        try:
            return groups_of(workspace.spark, paths, self._form, files.begin)
        except FileFault as fault:
            raise TargetError(f"{self.label} can't be read: {fault}", remedy=_CORRECT_FILE) from fault

    @property
    def _form(self) -> Form:
        return form_of_options(self.format, self.options)

    def _csv_frames(
        self,
        workspace: Workspace,
        found: Sequence[str],
        groups: Sequence[CsvGroup],
        fields: tuple[Field, ...] | None,
    ) -> list[DataFrame]:
        """Return the rows of each group of CSV files."""
        options = self._strict(fields)
        values = self.values(workspace, fields)
        if len(found) == 1 and not any(found[0] in group.paths for group in groups):
            options["basePath"] = _uri(found[0])
        folders = _folder_columns(found, (path for group in groups for path in group.paths))
        alike: dict[object, tuple[CsvGroup, list[Field] | None]] = {}
        for group in groups:
            own = (
                self._untyped(workspace, group, folders)
                if fields is None
                else self._typed(workspace, group, fields)
            )
            key = (group.end, group.has_breaks, group.first if own is None else tuple(own))
            known = alike[key][0].paths if key in alike else ()
            alike[key] = replace(group, paths=(*known, *map(_uri, group.paths))), own
        # A folder is listed at once, its files one by one.
        places = [_uri(each) for each in found] if len(alike) == 1 else None
        frames = []
        for group, own in alike.values():
            schema = None if own is None else reader_schema(own if values is None else map(values.raw, own))
            frame = read_group(workspace.spark, group, self._form, schema, options=options, places=places)
            if values is not None:
                frame = values.converted(frame, fields or ())
            elif fields is not None:
                frame = frame.select(*(_selected(frame, each) for each in fields))
            elif own is None:
                names = self._names(group)
                frame = frame.toDF(*names, *frame.columns[len(names) :])
            frames.append(frame)
        return frames

    def _untyped(self, workspace: Workspace, group: CsvGroup, folders: frozenset[str]) -> list[Field] | None:
        """Return the columns of CSV files where none are declared; None if Spark is to infer their types."""
        if self._form.header:
            self._note(workspace, group, header_doubt(group.first, self._form.separator))
        names = self._names(group)
        if self._option("inferSchema", "false").lower() == "true":
            return None
        # Spark takes values of folders for numbers and dates if they look so: `01` for 1.
        divided = [each.as_field() for each in self.partitions if each.name.lower() in folders]
        return [*(Field(name=name, type=_TEXT) for name in names), *divided]

    def _names(self, group: CsvGroup) -> tuple[str, ...]:
        try:
            return names_of(group, self._form, is_numbered=True)
        except FileFault as fault:
            raise TargetError(f"{self.label} can't be read: {fault}", remedy=_CORRECT_HEADER) from fault

    def _typed(self, workspace: Workspace, group: CsvGroup, fields: Sequence[Field]) -> list[Field]:
        """Return the columns to read CSV files with, of which some are declared."""
        names = {each.name.lower() for each in self.partitions}
        divided = [each for each in fields if each.name.lower() in names]
        corrupt = [each for each in fields if each.name == self._corrupt and each not in divided]
        declared = [each for each in fields if each not in (*divided, *corrupt)]
        has_header = self._form.header
        line = [value.strip(" \t") for value in group.first]
        try:
            columns = columns_of_file(line, declared, has_header=has_header)
        except ValueError as error:
            raise TargetError(
                f"{self.label} can't be read: the header of {group.paths[0]} is not as declared: {error}",
                remedy="Correct the header, or declare the column by the name that it has.",
            ) from error
        if has_header:
            self._note(workspace, group, header_doubt(line, self._form.separator, columns, declared))
        return [*columns, *corrupt, *divided]

    def _note(self, workspace: Workspace, group: CsvGroup, doubt: str | None) -> None:
        if doubt is not None:
            workspace.note(f"{self.label}: the header of {group.paths[0]} {doubt}")

    def _option(self, wanted: str, default: str) -> str:
        return next(
            (value for name, value in self.options.items() if name.lower() == wanted.lower()), default
        )

    @property
    def _corrupt(self) -> str:
        """The column that receives the text of records that do not parse, if it is declared."""
        return self._option("columnNameOfCorruptRecord", "_corrupt_record")

    def _strict(self, fields: Sequence[Field] | None) -> dict[str, str]:
        """Return the options for reading: a value that does not fit its column fails the query.

        Spark's own default reads such a value as null, and leaves out fields that are too many.
        """
        given = {name.lower() for name in self.options}
        options = {}
        if self.format == "csv" and not given & {"quote", "escape"}:
            options["unescapedQuoteHandling"] = "RAISE_ERROR"
        if self.format in TEXTS and not self._is_lenient(fields or ()):
            options["mode"] = "FAILFAST"
        return options

    def _is_lenient(self, fields: Sequence[Field]) -> bool:
        is_told = self._option("mode", "FAILFAST").upper() != "FAILFAST"
        return is_told or any(each.name == self._corrupt for each in fields)

    def values(self, workspace: Workspace, fields: Sequence[Field] | None) -> FileValues | None:
        """Return how values are converted; None if Spark reads them in the types of the columns."""
        options = {name.lower(): value for name, value in self.options.items()}
        is_text = fields is not None and self.format in TEXTS and not self._is_lenient(fields)
        if not is_text or not are_raw(options, fields or ()):
            return None
        # The SQL that converts times takes a session of another zone for one of UTC.
        session_zone = workspace.spark.conf.get("spark.sql.session.timeZone")
        zone = workspace.lake.settings.timezone if session_zone in _UTC else "UTC"
        folders = frozenset(each.name.lower() for each in self.partitions)
        return FileValues(self.label, self.format, options, folders, zone)

    def _reader(self, workspace: Workspace, fields: Iterable[Field] | None) -> DataFrameReader:
        options = {**self._form.options, **self._strict(tuple(fields or ()))} if self.format in TEXTS else {}
        # Patterns are already resolved; the names that were found are not patterns.
        reader = workspace.spark.read.format(self.format).options(**options).options(**self.options)
        reader = reader.option("__globPaths__", "false")
        return reader if fields is None else reader.schema(reader_schema(fields))

    def _read(
        self, workspace: Workspace, paths: Sequence[str], fields: tuple[Field, ...] | None
    ) -> DataFrame:
        """Return the rows of files with the same columns."""
        places = [_uri(path) for path in paths]
        if fields is None:
            frame = self._reader(workspace, None).load(places)
            types = {each.name.lower(): each.as_field() for each in self.partitions}
            if not types.keys() & {name.lower() for name in frame.columns}:
                return frame
            # Spark takes values of folders for numbers and dates if they look so: `01` for 1.
            own = [types.get(each.name.lower(), each) for each in fields_of(frame.schema)]
            return self._reader(workspace, own).load(places)
        present = {each.name.lower() for each in fields}
        former = [
            each.model_copy(update={"name": each.renamed_from, "renamed_from": None})
            for each in fields
            if each.renamed_from and each.renamed_from.lower() not in present and self.format != "csv"
        ]
        values = self.values(workspace, fields)
        read = [each if values is None else values.raw(each) for each in (*fields, *former)]
        frame = self._reader(workspace, read).load(places)
        frame = frame.select(*(_renamed(each) for each in fields)) if former else frame
        return frame if values is None else values.converted(frame, fields)


def _folders(found: Sequence[str], paths: Iterable[str]) -> frozenset[str]:
    """Return the names of the folders of files that are below some places."""
    folders = {path.rpartition("/")[0] for path in paths}
    roots = tuple(f"{place.rstrip('/')}/" for place in found)
    below = (folder.removeprefix(root) for folder in folders for root in roots if folder.startswith(root))
    return frozenset(part for each in below for part in each.split("/") if part)


def _folder_columns(found: Sequence[str], paths: Iterable[str]) -> frozenset[str]:
    """Return the columns, in lower case, that folders below some places give, as in `day=2022-01-01`."""
    parts = (part.partition("=") for part in _folders(found, paths))
    return frozenset(name.lower() for name, sign, _ in parts if sign)


def _renamed(field: Field) -> Column:
    """Return a column that files may have by its former name."""
    from pyspark.sql import functions

    if not field.renamed_from:
        return column(field.name)
    return functions.coalesce(column(field.name), column(field.renamed_from)).alias(field.name)


def _selected(frame: DataFrame, field: Field) -> Column:
    if find_column(frame, field.name) is not None:
        return column(field.name)
    return literal(None).cast(plain_type(field.type).ddl).alias(field.name)


def _uri(path: str) -> str:
    return f"file://{path}" if path.startswith("/") else path


def files_below(files: Files, place: str) -> Iterator[tuple[str, int]]:
    """Yield the path and the size of each file at or below a place."""
    for entry in files.listed(place):
        yield place if entry.name == parent(place)[1] else join(place, entry.name), entry.size
