"""The `mergeFiles` target: the files of a folder, one after the other, in one file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.lake.file_copy import concatenate
from lakewright.plan.outcome import Outcome
from lakewright.plan.resource import Resource
from lakewright.targets.context import Context
from lakewright.targets.file_output import FileOutput

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["MergeFilesTarget"]


class MergeFilesTarget(FileOutput):
    """Writes the files of a folder to one file, in the order of their names."""

    source: str = Declared(description="Folder; its hidden files and `_SUCCESS` are left out.")
    target: str = Declared(description="Path or URI of the one file.")
    delimiter: str = Declared(default="", description="Text between two files.")
    overwrite: bool = Declared(default=True, description="Whether BUILD may replace a file that is there.")

    def place(self, workspace: Workspace) -> str:
        """Return the path or URI of the one file."""
        return workspace.resolve_location(self.target)

    def inputs(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the folder."""
        return frozenset({Resource.file(workspace.resolve_location(self.source))})

    def write(self, context: Context, place: str) -> Outcome:
        """Write the one file.

        Raises:
            TargetError: The folder doesn't exist, or the file does and may not be replaced.
        """
        lake = context.workspace.lake
        source = context.workspace.resolve_location(self.source)
        self.check_copy(context, source, place, may_replace=self.overwrite)
        return Outcome(metrics={"files": concatenate(lake, source, place, self.delimiter.encode())})
