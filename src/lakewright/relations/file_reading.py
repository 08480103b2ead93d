"""How the files of a `file` relation are read: by the columns that each file has, and strictly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from lakewright.errors import TargetError
from lakewright.lake.columns import column, engine_type, fields_of, find_column, literal, reader_schema
from lakewright.lake.files import Files, files_at
from lakewright.lake.paths import join, parent
from lakewright.relations.csv_layout import CsvForm, CsvGroup, first_lines, grouped, reading_options
from lakewright.spec.models.fields import Field, PartitionField

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader

    from lakewright.workspace.workspace import Workspace

__all__ = ["FileReader", "files_below", "header_doubt", "union_of"]


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
        options = self._reading(fields, paths)
        groups = self._groups(workspace, files, paths, fields)
        if groups is None:
            yield self._read(workspace, options, found, fields)
            return
        if len(found) == 1 and found != groups[0].paths:
            options["basePath"] = _uri(found[0])
        for group in groups:
            yield self._read_group(workspace, options, group, fields)

    def _reader(
        self, workspace: Workspace, options: Mapping[str, str], fields: Iterable[Field] | None
    ) -> DataFrameReader:
        # Patterns are already resolved; the names that were found are not patterns.
        reader = workspace.spark.read.format(self.format).options(**options, __globPaths__="false")
        return reader if fields is None else reader.schema(reader_schema(fields))

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
                remedy="Correct the file, or declare how the files are written: the option `encoding`; the "
                "option `escape` for quotes after a backslash, or an empty `quote` for none.",
            ) from error

    def _keeps_corrupt(self, fields: Sequence[Field] | None) -> bool:
        """Return whether a column is declared that receives the text of records that do not parse."""
        given = {name.lower(): value for name, value in self.options.items()}
        corrupt = given.get("columnnameofcorruptrecord", "_corrupt_record")
        return any(each.name == corrupt for each in fields or ())

    def _groups(
        self,
        workspace: Workspace,
        files: Files,
        paths: Sequence[str],
        fields: tuple[Field, ...] | None,
    ) -> list[CsvGroup] | None:
        """Return the groups of CSV files with the same columns; None if all have those that Spark takes."""
        form = CsvForm.of(self.options) if self.format == "csv" else None
        if form is None or self._keeps_corrupt(fields) or (fields is None and not form.has_header):
            return None
        declared = None if fields is None else self._in_files(fields)
        try:
            groups = grouped(paths, first_lines(paths, form, files.begin), declared, form)
        except ValueError as error:
            raise TargetError(
                f"{self.label} can't be read: {error}",
                remedy="Correct the header; or declare a schema, whose names columns then have by position.",
            ) from error
        for group in groups:
            if (told := header_doubt(group, declared)) is not None:
                workspace.note(f"{self.label}: the header of {group.paths[0]} {told}")
        if len(groups) > 1:
            return groups
        is_plain = not groups or groups[0].columns is None or list(groups[0].columns) == declared
        return None if is_plain else groups

    def _read_group(
        self,
        workspace: Workspace,
        options: Mapping[str, str],
        group: CsvGroup,
        fields: tuple[Field, ...] | None,
    ) -> DataFrame:
        if fields is None:
            return self._read(workspace, options, group.paths, None)
        own = group.columns or self._in_files(fields)
        divided = [each for each in fields if each not in self._in_files(fields)]
        frame = self._reader(workspace, options, [*own, *divided]).load([_uri(each) for each in group.paths])
        return frame.select(*(_selected(frame, each) for each in fields))

    def _read(
        self,
        workspace: Workspace,
        options: Mapping[str, str],
        paths: Sequence[str],
        fields: tuple[Field, ...] | None,
    ) -> DataFrame:
        """Return the rows of files with the same columns."""
        places = [_uri(path) for path in paths]
        if fields is None:
            frame = self._reader(workspace, options, None).load(places)
            types = {each.name.lower(): each.as_field() for each in self.partitions}
            if not types.keys() & {name.lower() for name in frame.columns}:
                return frame
            # Spark takes values of folders for numbers and dates if they look so: `01` for 1.
            own = [types.get(each.name.lower(), each) for each in fields_of(frame.schema)]
            return self._reader(workspace, options, own).load(places)
        present = {each.name.lower() for each in fields}
        former = [
            each.model_copy(update={"name": each.renamed_from, "renamed_from": None})
            for each in fields
            if each.renamed_from and each.renamed_from.lower() not in present and self.format != "csv"
        ]
        frame = self._reader(workspace, options, [*fields, *former]).load(places)
        return frame.select(*(_renamed(each) for each in fields)) if former else frame

    def _in_files(self, fields: Sequence[Field]) -> list[Field]:
        names = {each.name.lower() for each in self.partitions}
        return [each for each in fields if each.name.lower() not in names]


def header_doubt(group: CsvGroup, declared: Sequence[Field] | None) -> str | None:
    """Return what may be wrong with the headers of files, whose first one is meant; None if nothing is."""
    if group.separator is not None and (declared is None or len(declared) > 1):
        sign = group.separator.replace("\t", "\\t")
        return f'is one column. If `{sign}` separates its columns, set `options: {{sep: "{sign}"}}`'
    if group.renamed is None:
        return None
    name, other = group.renamed
    return (
        f"has {name} where the schema has {other}, which is read by position. If it is the same column, "
        f"declare `renamedFrom: {name}`; otherwise correct the schema"
    )


def _renamed(field: Field) -> Column:
    """Return a column that files may have by its former name."""
    from pyspark.sql import functions

    if not field.renamed_from:
        return column(field.name)
    return functions.coalesce(column(field.name), column(field.renamed_from)).alias(field.name)


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
