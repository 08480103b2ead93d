"""The `mergeFiles` target: the files of a folder, one after the other, in one file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.lake.files import concatenate
from lakewright.plan.outcome import Outcome
from lakewright.targets.file_output import FileCopy

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake

__all__ = ["MergeFilesTarget"]


class MergeFilesTarget(FileCopy):
    """Writes the files of a folder to one file, in the order of their names."""

    source: str = Declared(description="Folder; its hidden files and `_SUCCESS` are left out.")
    delimiter: str = Declared(default="", description="Text between two files.")

    def copy_from(self, lake: Lake, source: str, place: str) -> Outcome:
        """Write the one file."""
        return Outcome(metrics={"files": concatenate(lake, source, place, self.delimiter.encode())})
