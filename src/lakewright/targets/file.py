"""The `file` target: writes a mapping's rows to files that no relation describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.relations.file import FileFormat, FileRelation
from lakewright.schema.types import Scalar
from lakewright.spec.models.base import TextMap
from lakewright.spec.models.fields import PartitionField
from lakewright.targets.writing import WritingTarget

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["FileTarget"]


class FileTarget(WritingTarget):
    """Writes files to a location; with a partition, to a folder named after it."""

    location: str = Declared(description="Folder, relative to the project's folder.")
    format: FileFormat = Declared(default="csv", description="Format of the files.")
    options: TextMap = Declared(default_factory=dict, description="Options of Spark for the format.")

    def output(self, workspace: Workspace) -> FileRelation:
        """Return the files as a relation."""
        return FileRelation(
            name=self.name,
            kind="file",
            location=self.location,
            format=self.format,
            options=self.options,
            partitions=tuple(PartitionField(name=name, type=Scalar("string")) for name in self.partition),
        )
