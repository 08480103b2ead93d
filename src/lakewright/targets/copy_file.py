"""The `copyFile`, `getFile` and `putFile` targets: copies of a file, also between file systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.lake.files import copy_file
from lakewright.plan.outcome import Outcome
from lakewright.targets.file_output import FileCopy

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake

__all__ = ["CopyFileTarget", "GetFileTarget", "PutFileTarget"]


class CopyFileTarget(FileCopy):
    """Copies a file, or a folder with everything below it, on any file systems that Spark knows."""

    def copy_from(self, lake: Lake, source: str, place: str) -> Outcome:
        """Copy the file."""
        copy_file(lake, source, place)
        return Outcome()


class GetFileTarget(CopyFileTarget):
    """Copies a file from a file system that Spark knows to this machine; the same as `copyFile`."""


class PutFileTarget(CopyFileTarget):
    """Copies a file of this machine to a file system that Spark knows; the same as `copyFile`."""
