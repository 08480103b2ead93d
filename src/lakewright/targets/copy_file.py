"""The `copyFile`, `getFile` and `putFile` targets: copies of a file, also between file systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.lake.file_copy import copy_file
from lakewright.plan.outcome import Outcome
from lakewright.plan.resource import Resource
from lakewright.targets.context import Context
from lakewright.targets.file_output import FileOutput

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["CopyFileTarget", "GetFileTarget", "PutFileTarget"]


class CopyFileTarget(FileOutput):
    """Copies a file, or a folder with everything below it, on any file systems that Spark knows."""

    source: str = Declared(description="Path or URI of the file; a path is relative to the project's folder.")
    target: str = Declared(description="Path or URI of the copy.")
    overwrite: bool = Declared(default=True, description="Whether BUILD may replace a file that is there.")

    def place(self, workspace: Workspace) -> str:
        """Return the path or URI of the copy."""
        return workspace.resolve_location(self.target)

    def inputs(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the file."""
        return frozenset({Resource.file(workspace.resolve_location(self.source))})

    def write(self, context: Context, place: str) -> Outcome:
        """Copy the file.

        Raises:
            TargetError: The file doesn't exist, or the copy does and may not be replaced.
        """
        lake = context.workspace.lake
        source = context.workspace.resolve_location(self.source)
        self.check_copy(context, source, place, may_replace=self.overwrite)
        copy_file(lake, source, place)
        return Outcome()


class GetFileTarget(CopyFileTarget):
    """Copies a file from a file system that Spark knows to this machine; the same as `copyFile`."""


class PutFileTarget(CopyFileTarget):
    """Copies a file of this machine to a file system that Spark knows; the same as `copyFile`."""
