"""Targets that write one file, or a folder of files, as a whole: copies, rows as CSV, and schemas."""

from __future__ import annotations

import csv
import json
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field as Declared

from lakewright.errors import SpecError, TargetError
from lakewright.lake.columns import column
from lakewright.lake.files import LocalFiles, concatenate, copy_file, files_at, part_of
from lakewright.lake.paths import local_path
from lakewright.mappings.mapping import Input
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.schemas.avro import as_avro
from lakewright.schemas.schema import Schema
from lakewright.schemas.spark import as_spark_json
from lakewright.spec.models.base import KindOf, RefersTo, Texts, from_text
from lakewright.targets.context import Context
from lakewright.targets.target import OutputTarget
from lakewright.targets.writing import observed_measures
from lakewright.transform.storable_columns import check_text_columns

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.workspace.workspace import Workspace


class PlaceTarget(OutputTarget):
    """A target that is about one file or folder; its observations are called `what`, and the place."""

    what: ClassVar[str] = "file"

    @abstractmethod
    def place(self, workspace: Workspace) -> str:
        """Return the path or URI."""

    def places(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the file or folder."""
        return frozenset({Resource.file(self.place(workspace))})

    def observe(self, context: Context) -> Observation:
        """Return whether it is there."""
        place = self.place(context.workspace)
        found = Answer.of(files_at(place, context.workspace.lake).exists(place))
        return Observation(f"{self.what}:{place}", exists=found, filled=found)


class FileOutput(PlaceTarget):
    """Writes a file in BUILD unless it is there, checks in VERIFY that it is, and removes it."""

    own_phases: ClassVar[frozenset[Phase]] = frozenset(
        {Phase.BUILD, Phase.VERIFY, Phase.TRUNCATE, Phase.DESTROY}
    )

    @abstractmethod
    def write(self, context: Context, place: str) -> Outcome:
        """Write the file; readers see it when it is complete."""

    def local_place(self, workspace: Workspace, location: str, remedy: str) -> str:
        """Return the path of a file.

        Raises:
            SpecError: It isn't on this machine.
        """
        place = workspace.resolve_location(location)
        if (local := local_path(place)) is None:
            raise SpecError.of(f"{place} is not a file of this machine", remedy=remedy, subject=self.label)
        return str(local)

    def inputs(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that are read in BUILD."""
        return frozenset()

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that are read; in VERIFY, the file."""
        if phase is Phase.VERIFY:
            return frozenset({Resource.file(self.place(workspace))})
        return self.inputs(workspace)

    def builds_rows(self, workspace: Workspace) -> bool:
        """Return True: it writes a file."""
        return True

    def work(self, context: Context, phase: Phase) -> Outcome:
        """Write the file, or remove it.

        Raises:
            SpecError: It is a folder in which the project lies.
        """
        place = context.workspace.removable(self.place(context.workspace), self.label)
        if phase is Phase.BUILD:
            return self.write(context, place)
        files_at(place, context.workspace.lake).remove(place)
        return Outcome()


class FileCopy(FileOutput):
    """Makes one file, or a folder of files, of another."""

    source: str = Declared(description="Path or URI of what is read.")
    target: str = Declared(description="Path or URI of what is written.")
    overwrite: bool = Declared(default=True, description="Whether BUILD may replace an existing file.")

    def place(self, workspace: Workspace) -> str:
        """Return the path or URI of what is written."""
        return workspace.resolve_location(self.target)

    def inputs(self, workspace: Workspace) -> frozenset[Resource]:
        """Return what is read."""
        return frozenset({Resource.file(workspace.resolve_location(self.source))})

    def write(self, context: Context, place: str) -> Outcome:
        """Write the copy.

        Raises:
            TargetError: The source doesn't exist, or the copy does and may not be replaced.
        """
        lake = context.workspace.lake
        source = context.workspace.resolve_location(self.source)
        if not files_at(source, lake).exists(source):
            raise TargetError(f"{self.label}: {source} does not exist", remedy="Check `source`.")
        if not self.overwrite and files_at(place, lake).exists(place):
            raise TargetError(f"{self.label}: {place} exists already", remedy="Set overwrite: true.")
        lake.check_commit()
        return self.copy_from(lake, source, place)

    @abstractmethod
    def copy_from(self, lake: Lake, source: str, place: str) -> Outcome:
        """Write the copy of what is there, at a place that may be written."""


class CopyFileTarget(FileCopy):
    """Copies a file or folder, on any file systems that Spark knows."""

    def copy_from(self, lake: Lake, source: str, place: str) -> Outcome:
        """Copy the file."""
        copy_file(lake, source, place)
        return Outcome()


class GetFileTarget(CopyFileTarget):
    """The same as `copyFile`, to this machine."""


class PutFileTarget(CopyFileTarget):
    """The same as `copyFile`, from this machine."""


class MergeFilesTarget(FileCopy):
    """Writes the files of a folder to one file, in the order of their names."""

    source: str = Declared(description="Folder; hidden files and `_SUCCESS` are left out.")
    delimiter: str = Declared(default="", description="Text between two files.")

    def copy_from(self, lake: Lake, source: str, place: str) -> Outcome:
        """Write the one file."""
        return Outcome(metrics={"files": concatenate(lake, source, place, self.delimiter.encode())})


class LocalTarget(FileOutput):
    """Writes the rows of a mapping to one local CSV file."""

    mapping: Input = Declared(description="Mapping whose rows to write.")
    filename: str = Declared(description="Path of the file.")
    format: Annotated[Literal["csv"], from_text(str.lower)] = Declared(
        default="csv", description="Format of the file."
    )
    columns: Texts = Declared(default=(), description="Columns to write; default: all.")
    encoding: str = Declared(default="UTF-8", description="Encoding of the file.")
    header: bool = Declared(default=True, description="Write the names of the columns first.")
    newline: str = Declared(default="\n", description="End of each line.")
    delimiter: str = Declared(default=",", pattern="^.$", description="Between two values.")
    quote: str = Declared(default='"', pattern="^.$", description="Around values with separators.")
    escape: str = Declared(default="\\", pattern="^.$", description="Before a quote within a value.")

    def place(self, workspace: Workspace) -> str:
        """Return the path of the file.

        Raises:
            SpecError: It isn't on this machine.
        """
        return self.local_place(workspace, self.filename, "Use kind: file.")

    def inputs(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that the mapping reads."""
        return workspace.required(self.mapping)

    def write(self, context: Context, place: str) -> Outcome:
        """Write the rows, one after the other."""
        frame = context.workspace.frame(self.mapping)
        names = list(self.columns) or frame.columns
        check_text_columns(self.label, frame.select(*map(column, names)))
        texts = frame.select(*(column(name).cast("string").alias(name) for name in names))
        part = Path(part_of(place))
        part.parent.mkdir(parents=True, exist_ok=True)
        # Spark measures the rows of a query once it has ended, and this one is read step by step.
        is_observed = bool(context.workspace.observations)
        if is_observed:
            texts = texts.persist()
            texts.count()
        count = 0
        with part.open("w", encoding=self.encoding, newline="") as file:
            writer = csv.writer(
                file,
                delimiter=self.delimiter,
                quotechar=self.quote,
                escapechar=self.escape,
                doublequote=False,
                lineterminator=self.newline,
            )
            if self.header:
                writer.writerow(names)
            for row in texts.toLocalIterator():
                writer.writerow(row)
                count += 1
        if is_observed:
            texts.unpersist()
        context.workspace.lake.check_commit()
        part.replace(place)
        measures = observed_measures(context.workspace, self.mapping)
        return Outcome(metrics={"target_records": count, **measures})


class SchemaTarget(FileOutput):
    """Writes a schema to a file, as Avro or in Spark's JSON form."""

    declared_schema: Annotated[Schema, KindOf("schema", default="inline"), RefersTo.INSIDE] = Declared(
        alias="schema", description="The schema to write."
    )
    file: str = Declared(description="Path of the file.")
    format: Annotated[Literal["avro", "spark"], from_text(str.lower)] = Declared(
        default="avro", description="Avro, or Spark's JSON form."
    )

    def place(self, workspace: Workspace) -> str:
        """Return the path of the file.

        Raises:
            SpecError: It isn't on this machine.
        """
        return self.local_place(workspace, self.file, "Write it to a folder of this machine.")

    def inputs(self, workspace: Workspace) -> frozenset[Resource]:
        """Return what the mappings of the schema read."""
        return frozenset().union(*(workspace.required(name) for name in self.declared_schema.mappings()))

    def write(self, context: Context, place: str) -> Outcome:
        """Write the schema."""
        fields = self.declared_schema.fields(context.workspace)
        document = as_spark_json(fields) if self.format == "spark" else as_avro(fields, self.name)
        LocalFiles().write(place, (json.dumps(document, indent=2) + "\n").encode())
        return Outcome(metrics={"columns": len(fields)})
