"""How the files of a `file` relation are read: by the columns that each file has, and strictly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from lakewright.errors import TargetError
from lakewright.lake.columns import column, engine_type, find_column, literal, reader_schema
from lakewright.lake.files import Files, files_at
from lakewright.lake.paths import join, parent
from lakewright.relations.csv_layout import CsvForm, CsvGroup, first_lines, grouped, reading_options
from lakewright.spec.models.fields import Field, PartitionField

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader

    from lakewright.workspace.workspace import Workspace

__all__ = ["FileReader", "files_below", "union_of"]


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
        paths = [path for place in found for path, size in files_below(files, place) if size]
        # Patterns are already resolved; the names that were found are not patterns.
        reader = workspace.spark.read.format(self.format).options(**self._reading(fields, paths))
        reader = reader.option("__globPaths__", "false")
        groups = self._groups(files, paths, fields)
        if groups is None:
            reader = reader if fields is None else reader.schema(reader_schema(fields))
            yield reader.load([_uri(path) for path in found])
            return
        if len(found) == 1 and found != groups[0].paths:
            reader = reader.option("basePath", _uri(found[0]))
        for group in groups:
            yield self._read_group(reader, group, fields)

    def _reading(self, fields: tuple[Field, ...] | None, paths: Sequence[str]) -> dict[str, str]:
        """Return the options for reading: a value that does not fit its column fails the query.

        Spark's own default reads such a value as null, and leaves out fields that are too many.
        """
        has_mode = any(name.lower() == "mode" for name in self.options)
        is_strict = self.format in ("csv", "json") and not has_mode and not self._keeps_corrupt(fields)
        options = {**self.options, **({"mode": "FAILFAST"} if is_strict else {})}
        if self.format != "csv":
            return options
        try:
            return reading_options(options, paths)
        except ValueError as error:
            raise TargetError(
                f"{self.label} can't be read: {error}",
                remedy="Close the quotes and double those inside; or declare how the files are written: "
                "the option `escape` for quotes after a backslash, or an empty `quote` for none.",
            ) from error

    def _keeps_corrupt(self, fields: Sequence[Field] | None) -> bool:
        """Return whether a column is declared that receives the text of records that do not parse."""
        given = {name.lower(): value for name, value in self.options.items()}
        corrupt = given.get("columnnameofcorruptrecord", "_corrupt_record")
        return any(each.name == corrupt for each in fields or ())

    def _groups(
        self, files: Files, paths: Sequence[str], fields: tuple[Field, ...] | None
    ) -> list[CsvGroup] | None:
        """Return the groups of CSV files with the same columns; None if all have those that Spark takes."""
        form = CsvForm.of(self.options) if self.format == "csv" else None
        if form is None or self._keeps_corrupt(fields) or (fields is None and not form.has_header):
            return None
        declared = None if fields is None else self._in_files(fields)
        groups = grouped(paths, first_lines(paths, form, files.begin), declared, form)
        if len(groups) > 1:
            return groups
        is_plain = not groups or groups[0].columns is None or list(groups[0].columns) == declared
        return None if is_plain else groups

    def _read_group(
        self, reader: DataFrameReader, group: CsvGroup, fields: tuple[Field, ...] | None
    ) -> DataFrame:
        paths = [_uri(path) for path in group.paths]
        if fields is None:
            return reader.load(paths)
        own = group.columns or self._in_files(fields)
        divided = [each for each in fields if each not in self._in_files(fields)]
        frame = reader.schema(reader_schema([*own, *divided])).load(paths)
        return frame.select(*(_selected(frame, each) for each in fields))

    def _in_files(self, fields: Sequence[Field]) -> list[Field]:
        names = {each.name.lower() for each in self.partitions}
        return [each for each in fields if each.name.lower() not in names]


def _selected(frame: DataFrame, field: Field) -> Column:
    if find_column(frame, field.name) is not None:
        return column(field.name)
    return literal(None).cast(engine_type(field.type).ddl).alias(field.name)


def _uri(path: str) -> str:
    return f"file://{path}" if path.startswith("/") else path


def files_below(files: Files, place: str) -> Iterator[tuple[str, int]]:
    """Yield the path and the size of each file at or below a place."""
    for entry in files.listed(place):
        yield place if entry.name == parent(place)[1] else join(place, entry.name), entry.size


def union_of(frames: Iterable[DataFrame]) -> DataFrame:
    """Return the rows of all frames; columns are matched by name, and null where a frame lacks them."""
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
