"""Datasets: rows of a mapping, a relation, files or the project that targets copy, compare and print."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.lake.partition import Partition, canonical_partition
from lakewright.mappings.mapping import Input
from lakewright.plan.resource import Resource
from lakewright.relations.file import FileFormat, FileRelation
from lakewright.relations.relation import Relation, StoredRelation
from lakewright.relations.values import ValuesRelation
from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import KindOf, Named, RefersTo, Rows, TextMap
from lakewright.spec.models.fields import TypeText
from lakewright.workspace.readable_parts import RelationReference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


class Dataset(Named):
    """Rows that a target reads or writes."""

    @abstractmethod
    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that the rows are read from."""

    @abstractmethod
    def read(self, workspace: Workspace) -> DataFrame:
        """Return the rows."""

    def stored(self, workspace: Workspace) -> tuple[StoredRelation, Partition]:
        """Return the relation and the partition to write rows to.

        Raises:
            SpecError: The dataset can only be read.
        """
        raise SpecError.of(
            f"a dataset of kind {self.kind!r} cannot be written",
            remedy="Write to a dataset of kind file or relation.",
        )


class _RelationLike(Dataset):
    """A dataset that reads and writes a relation, or a partition of it."""

    @abstractmethod
    def source(self, workspace: Workspace) -> Relation:
        """Return the relation."""

    def chosen(self) -> Partition:
        """Return the partition; an empty one stands for the whole relation."""
        return {}

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources of the relation, or of the partition."""
        return self.source(workspace).resources(workspace, self.chosen())

    def read(self, workspace: Workspace) -> DataFrame:
        """Return the rows of the relation, or of the partition."""
        chosen = self.chosen()
        return self.source(workspace).read(workspace, [chosen] if chosen else [])

    def stored(self, workspace: Workspace) -> tuple[StoredRelation, Partition]:
        """Return the relation and the partition."""
        source = self.source(workspace)
        if not isinstance(source, StoredRelation):
            return super().stored(workspace)
        return source, canonical_partition(source.partitions, self.chosen())


class FileDataset(_RelationLike):
    """Reads and writes files."""

    location: str = Declared(description="Folder or file.")
    format: FileFormat = Declared(default="csv", description="Format of the files.")
    options: TextMap = Declared(default_factory=dict, description="Options of Spark for the format.")
    declared_schema: Annotated[
        Annotated[Schema, KindOf("schema", default="inline")] | None, RefersTo.INSIDE
    ] = Declared(
        default=None, alias="schema", description="Columns; by default they are read from the files."
    )

    def source(self, workspace: Workspace) -> FileRelation:
        """Return the files as a relation."""
        return FileRelation(
            kind="file",
            location=self.location,
            format=self.format,
            options=self.options,
            declared_schema=self.declared_schema,
        )


class MappingDataset(Dataset):
    """Reads the rows of a mapping."""

    mapping: Input = Declared(description="Name of the mapping.")

    def requires(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that the mapping reads."""
        return workspace.required(self.mapping)

    def read(self, workspace: Workspace) -> DataFrame:
        """Return the mapping's rows."""
        return workspace.frame(self.mapping)


class RelationDataset(_RelationLike):
    """Reads and writes a relation, or a partition of it."""

    deferred: ClassVar[frozenset[str]] = frozenset({"relation.pattern"})

    relation: RelationReference = Declared(description="The relation, or its name.")
    partition: TextMap = Declared(
        default_factory=dict, description="Value of each partition column; default: the whole relation."
    )

    def source(self, workspace: Workspace) -> Relation:
        """Return the relation."""
        return Relation.named(workspace, self.relation)

    def chosen(self) -> Partition:
        """Return the partition."""
        return self.partition


class ValuesDataset(_RelationLike):
    """Returns the declared records, with the columns of `columns` or of `schema`."""

    records: Rows = Declared(
        default_factory=list, description="Rows: lists of values, or maps of column to value."
    )
    columns: dict[str, TypeText] | None = Declared(default=None, description="Columns with their types.")
    declared_schema: Annotated[Schema, KindOf("schema", default="inline")] | None = Declared(
        default=None, alias="schema", description="Columns, instead of `columns`."
    )

    def source(self, workspace: Workspace) -> ValuesRelation:
        """Return the records as a relation."""
        return ValuesRelation(
            kind="values", records=self.records, columns=self.columns, declared_schema=self.declared_schema
        )
