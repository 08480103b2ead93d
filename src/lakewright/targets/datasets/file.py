"""The `file` dataset: files of one format at a location."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from pydantic import Field as Declared

from lakewright.relations.file import FileFormat, FileRelation
from lakewright.schemas.schema import Schema
from lakewright.spec.models.base import KindOf, Reference, TextMap
from lakewright.targets.datasets.dataset import RelationLike

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["FileDataset"]


class FileDataset(RelationLike):
    """Reads and writes files."""

    location: str = Declared(description="Folder or file, relative to the project's folder.")
    format: FileFormat = Declared(default="csv", description="Format of the files.")
    options: TextMap = Declared(default_factory=dict, description="Options of Spark for the format.")
    declared_schema: Annotated[Schema, KindOf("schema", default="inline")] | None = Declared(
        default=None, alias="schema", description="Columns; by default they are read from the files."
    )

    def references(self) -> Iterable[Reference]:
        """Return what the schema refers to."""
        inner = () if self.declared_schema is None else self.declared_schema.references()
        return [Reference(each.category, each.name, ("schema", *each.path)) for each in inner]

    def source(self, workspace: Workspace) -> FileRelation:
        """Return the files as a relation."""
        return FileRelation(
            kind="file",
            location=self.location,
            format=self.format,
            options=self.options,
            declared_schema=self.declared_schema,
        )
