"""The `file` relation: files of one format below a location.

A pattern such as `${year}/${month}/*.csv` says where each partition's files are, if not in a folder of its
name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field as Declared

from lakewright.errors import MigrationError, SpecError, TargetError
from lakewright.lake.cluster import check_written
from lakewright.lake.columns import conform, fields_of
from lakewright.lake.file_probe import has_rows
from lakewright.lake.files import Files, files_at
from lakewright.lake.partition import (
    Partition,
    canonical_partition,
    partition_condition,
    partition_folder,
    typed_partition,
    with_folder_values,
)
from lakewright.lake.paths import join, local_path
from lakewright.plan.observation import Answer, Observation, TableChange
from lakewright.plan.resource import Resource
from lakewright.reader.files import file_sql, union_of
from lakewright.reader.source import writing_options
from lakewright.relations.file_reading import FileReader, files_below
from lakewright.relations.relation import OutputMode, StoredRelation, WriteSummary, left_out
from lakewright.relations.staging import StagedFiles, check_single
from lakewright.schema.conversion import convert
from lakewright.schema.sql import text_sql
from lakewright.schema.types import TEXT
from lakewright.spark.functions import functions
from lakewright.spec.expressions.expression import Name, Node, names_in, parse_template
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import render_value
from lakewright.spec.models.base import TextMap, from_text
from lakewright.spec.models.fields import Field, PartitionField
from lakewright.transform.storable_columns import check_text_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


FileFormat = Annotated[Literal["csv", "json", "parquet", "text", "orc", "avro"], from_text(str.lower)]


class FileRelation(StoredRelation):
    """Files below `location`, in a folder per partition unless `pattern` defines another layout.

    A write replaces the content by a single rename.

    Files are read like slices, at any depth. CSV columns are matched by name, or by position if the header
    has no declared column at another place. Empty text is null.
    """

    deferred: ClassVar[frozenset[str]] = frozenset({"pattern"})

    location: str = Declared(description="Folder or file.")
    format: FileFormat = Declared(default="csv", description="Format of the files.")
    pattern: str | None = Declared(
        default=None,
        description="Path of a partition's files, such as ${year}/*.csv. With `*` or `?` it can only be "
        "read.",
    )
    options: TextMap = Declared(default_factory=dict, description="Spark's options for the format.")

    def root(self, workspace: Workspace) -> str:
        """Return the location: an absolute local path or a URI."""
        return workspace.resolve_location(self.location)

    def place(self, workspace: Workspace, partition: Partition) -> str:
        """Return the path of a partition's files, with `*` for columns that the partition does not fix."""
        wanted = canonical_partition(self.partitions, partition)
        root = self.root(workspace)
        if self.pattern is not None:
            return join(root, self._within(self._pattern(workspace).path(wanted)))
        folders = [
            partition_folder({each.name: wanted[each.name]}) if each.name in wanted else "*"
            for each in self.partitions
        ]
        while folders and folders[-1] == "*":
            folders.pop()
        return join(root, *folders) if folders else root

    def check_partition(self, workspace: Workspace, partition: Partition) -> None:
        """Check that each value names one file or folder in the pattern."""
        if self.pattern is not None:
            self._pattern(workspace).check(canonical_partition(self.partitions, partition))

    def _within(self, path: str) -> str:
        if ".." in path.split("/"):
            raise SpecError.of(
                f"{path!r} is outside of its location",
                remedy="Do not use '..' in the pattern and its values.",
                subject=self.label,
            )
        return path

    def _pattern(self, workspace: Workspace) -> Pattern:
        return Pattern(self.pattern or "", self.partitions, workspace.scope)

    def resources(self, workspace: Workspace, partition: Partition | None = None) -> frozenset[Resource]:
        """Return the files of the partition, or all files."""
        return frozenset({Resource.file(self.place(workspace, partition or {}))})

    def observe(self, workspace: Workspace, partition: Partition | None = None) -> Observation:
        """Return whether the location exists, and whether it or the partition has rows."""
        place = self.place(workspace, partition or {})
        subject = str(Resource.file(place))
        try:
            files = files_at(place, workspace.lake)
            exists = bool(files.matching(self.root(workspace)))
            filled = exists and any(self._has_rows(files, found) for found in files.matching(place))
        except OSError as error:
            return Observation(subject, error=f"{place} cannot be read: {error}")
        other = self._other_folders(workspace) if exists else None
        return Observation(
            subject,
            exists=Answer.of(exists),
            filled=Answer.of(filled),
            changes=() if other is None else (other,),
            refusal=None if other is None else self._refusal(other).as_fault(),
        )

    def _has_rows(self, files: Files, folder: str) -> bool:
        for path, size in files_below(files, folder):
            local = local_path(path)
            if size and (local is None or has_rows(local, self.format, self.options)):
                return True
        return False

    def read(self, workspace: Workspace, partitions: Sequence[Partition] = ()) -> DataFrame:
        """Return the rows of the files, or of partitions; see the class for how columns are matched.

        Raises:
            TargetError: There are no files.
        """
        wanted = [canonical_partition(self.partitions, each) for each in partitions]
        fields = self.declared(workspace)
        if self.pattern is not None:
            return self._read_pattern(workspace, wanted, fields)
        frame = self._reader(workspace, fields).frame(self.root(workspace), wanted)
        return frame.where(partition_condition(self.partitions, wanted)) if wanted else frame

    def _read_pattern(
        self, workspace: Workspace, partitions: Sequence[Partition], fields: tuple[Field, ...] | None
    ) -> DataFrame:
        """Read the files of the pattern; partition values come from the paths, or are the requested ones."""
        names = {each.name.lower() for each in self.partitions}
        inner = None if fields is None else tuple(each for each in fields if each.name.lower() not in names)
        frame = union_of(
            self._with_values(
                workspace, self._reader(workspace, inner).frame(self.place(workspace, each)), each
            )
            for each in partitions or [{}]
        )
        return frame if fields is None else conform(frame, fields)

    def _with_values(self, workspace: Workspace, frame: DataFrame, partition: Partition) -> DataFrame:
        expression, groups = self._pattern(workspace).found_in_path()
        path = f"url_decode(replace({file_sql(frame)}, '+', '%2B'))"
        for each in self.partitions:
            if each.name in partition:
                value = text_sql(partition[each.name])
            elif each.name in groups:
                value = f"regexp_extract({path}, {text_sql(expression)}, {groups[each.name]})"
            else:
                raise TargetError(
                    f"{self.label}: the paths do not contain the value of partition column {each.name}",
                    remedy=f"Name the partitions to read (partitions: {{{each.name}: …}}).",
                )
            frame = frame.withColumn(
                each.name, functions.expr(convert(value, TEXT, each.type, column=each.name).strict)
            )
        return frame

    def _reader(self, workspace: Workspace, fields: Sequence[Field] | None) -> FileReader:
        return FileReader(workspace, self.label, self.format, self.options, self.partitions, fields)

    def create(self, workspace: Workspace) -> None:
        """Create the folder."""
        root = self.root(workspace)
        files_at(root, workspace.lake).make_folder(root)

    def migrate(self, workspace: Workspace, *, allow_data_loss: bool) -> None:
        """Check that the folders have the declared partition columns; files have no common schema to migrate.

        Raises:
            MigrationError: They have others, so that Spark could not read old and new files together.
        """
        found = self._other_folders(workspace)
        if found is not None:
            raise self._refusal(found)

    def _refusal(self, other: TableChange) -> MigrationError:
        return MigrationError(
            f"{self.label}: {other.description}",
            remedy="Declare the partition columns that the folders have; or remove the files, or name "
            "another location, and build the relation again.",
        )

    def _other_folders(self, workspace: Workspace) -> TableChange | None:
        """Return how the folders of the first file differ from the declared partition columns."""
        root = self.root(workspace)
        first = next(files_at(root, workspace.lake).listed(root), None)
        if first is None or self.pattern is not None:
            return None
        found = [part.partition("=")[0] for part in first.name.split("/")[:-1] if "=" in part]
        wanted = [each.name for each in self.partitions]
        if [name.lower() for name in found] == [name.lower() for name in wanted]:
            return None
        own, other = (", ".join(names) or "no column" for names in (wanted, found))
        return TableChange(f"partitioned by {own}, but its files are in folders by {other}")

    def destroy(self, workspace: Workspace) -> None:
        """Remove everything at the location."""
        root = workspace.removable(self.root(workspace), self.label)
        files_at(root, workspace.lake).remove(root)

    def truncate(self, workspace: Workspace, partition: Partition | None = None) -> None:
        """Remove the files of a partition, or all; the folder stays."""
        place = workspace.removable(self.place(workspace, partition or {}), self.label)
        files = files_at(place, workspace.lake)
        for found in files.matching(place):
            if partition:
                files.remove(found)
            else:
                StagedFiles(files, found, self.format, self.options).empty()

    def write(
        self, workspace: Workspace, frame: DataFrame, *, partition: Partition, mode: OutputMode
    ) -> WriteSummary:
        """Write the rows to a staging folder, then replace the previous files or add to them.

        With a partition, all rows go there regardless of their partition columns. Otherwise rows go to the
        partitions they name; `OVERWRITE` then removes all other partitions, `OVERWRITE_DYNAMIC` keeps them.
        """
        wanted = canonical_partition(self.partitions, partition)
        open_columns = self.open_columns(wanted)
        place = workspace.removable(self.place(workspace, wanted), self.label)
        check_single(self.label, place)
        check_written(workspace.lake, place, self.label)
        if mode is not OutputMode.OVERWRITE or partition:
            self.migrate(workspace, allow_data_loss=False)
        if self.declared_schema is None:
            self._check_names(frame)
        outgoing = self._outgoing(workspace, frame, wanted)
        if self.format == "csv":
            check_text_columns(self.label, outgoing)
        options = self._writing(workspace)
        writer = StagedFiles(files_at(place, workspace.lake), place, self.format, options)
        rows = writer.stage(outgoing, open_columns, keeps_empty=self.declared_schema is None)
        workspace.lake.check_commit()
        writer.put(mode, open_columns)
        return WriteSummary(rows, left_out=left_out(frame, fields_of(outgoing.schema), partition))

    def _check_names(self, frame: DataFrame) -> None:
        lower = [name.lower() for name in frame.columns]
        if doubled := [name for name in frame.columns if lower.count(name.lower()) > 1]:
            raise TargetError(
                f"{self.label}: the rows have several columns of one name: {', '.join(doubled)}",
                remedy="Rename or drop all but one of them in the mapping; case does not count.",
            )

    def _writing(self, workspace: Workspace) -> Mapping[str, str]:
        """Return the options for writing, such that reading gives the same rows and columns."""
        zone = self._reader(workspace, self.declared(workspace)).local_zone
        return self._complete() if zone is None else {"timeZone": zone, **self._complete()}

    def _complete(self) -> Mapping[str, str]:
        options = writing_options(self.format, self.options)
        has_option = any(name.lower() == "ignorenullfields" for name in options)
        if self.format != "json" or self.declared_schema is not None or has_option:
            return options
        return {**options, "ignoreNullFields": "false"}  # else a column of nulls alone is lost

    def _outgoing(self, workspace: Workspace, frame: DataFrame, partition: Partition) -> DataFrame:
        fields = self.declared(workspace)
        if fields is None:
            kept = frame.drop(*partition)
            types = {each.name.lower(): each.as_field() for each in self.partitions}
            fields = tuple(types.get(each.name.lower(), each) for each in fields_of(kept.schema))
        frame = conform(frame, [each for each in fields if each.name not in partition], is_strict=True)
        return with_folder_values(frame, self.partitions)

    def open_columns(self, partition: Partition) -> list[str]:
        """Return the partition columns after those of the partition, whose values the rows bring."""
        fixed = (part for part in parse_template(self.pattern or "").parts if isinstance(part, str))
        check_single(self.label, "".join(fixed))
        return self.columns_after(partition, needs_all=self.pattern is not None)


_SIGNS = re.compile(r"[/*?\[{\\]")
"""Characters that make a folder, or by which a path stands for others, here or in Hadoop."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text with expressions for the values of partition columns, such as `${year}/${month}/*.csv`.

    Attributes:
        columns: The relation's partition columns.
        scope: The scope of the instance, for other names in the pattern.
    """

    text: str
    columns: tuple[PartitionField, ...]
    scope: Scope

    def path(self, partition: Partition) -> str:
        """Return the path of a partition below the location, with `*` for columns that it does not fix.

        Raises:
            SpecError: A value does not name one file or folder, so that its rows would not be found again.
        """
        return self._path(partition, self._parts())

    def check(self, partition: Partition) -> None:
        """Raise the `SpecError` of `path`, whether or not other names in the pattern are known."""
        parts = self._parts()
        self._path(partition, [part if isinstance(part, str) or self._used(part) else "*" for part in parts])

    def _path(self, partition: Partition, parts: Iterable[str | Node]) -> str:
        scope = self.scope.child(typed_partition(self.columns, partition))
        path = ""
        for part in parts:
            if isinstance(part, str):
                path += part
            elif (used := self._used(part)) <= set(partition):
                text = render_value(scope.evaluate_node(part))
                self._check({name: partition[name] for name in sorted(used)}, text, path)
                path += text
            else:
                path += "*"
        return path

    def _check(self, values: Partition, text: str, before: str) -> None:
        """Check that values of columns do not change the folders of a path, given the path before them.

        An expression may make folders of a value that has none, as `${day.format('yyyy/MM')}` does.
        """
        for sign in _SIGNS.findall(text):
            for name, value in values.items():
                if sign in value:
                    effect = "makes another folder" if sign == "/" else "stands for other names"
                    raise SpecError.of(
                        f"{_subject(values)} has a `{sign}`, which {effect} in the pattern {self.text!r}",
                        remedy="Give another value, or replace the character in the pattern: "
                        f"${{{name}.replace('{sign}', '_')}}.",
                    )
        if values and text.startswith(".") and before[-1:] in ("", "/"):
            raise SpecError.of(
                f"{_subject(values)} begins with a full stop, so that its files are hidden or outside of its "
                f"folder in the pattern {self.text!r}",
                remedy="Give another value, or begin the name with another character in the pattern.",
            )

    def found_in_path(self) -> tuple[str, dict[str, int]]:
        """Return a regular expression for the end of a file's path, and the group of each column in it.

        Only columns whose value appears unchanged in the path, as in `${year}`, have a group.
        """
        groups: dict[str, int] = {}
        expression = "/"
        for part in self._parts():
            if isinstance(part, str):
                expression += _glob_expression(part)
            elif isinstance(part, Name) and self._used(part) and part.name not in groups:
                groups[part.name] = len(groups) + 1
                expression += "([^/]*)"
            elif self._used(part):
                expression += "[^/]*"
            else:
                expression += re.escape(render_value(self.scope.evaluate_node(part)))
        return expression + "(?:/[^/]*)?$", groups

    def _parts(self) -> Sequence[str | Node]:
        return parse_template(self.text).parts

    def _used(self, node: Node) -> frozenset[str]:
        return names_in(node) & {column.name for column in self.columns}


def _glob_expression(text: str) -> str:
    return "".join({"*": "[^/]*", "?": "[^/]"}.get(character, re.escape(character)) for character in text)


def _subject(values: Partition) -> str:
    columns, texts = ", ".join(values), ", ".join(map(repr, values.values()))
    return f"partition column {columns}: the value {texts}"
