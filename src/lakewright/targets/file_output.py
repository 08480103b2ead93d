"""Targets that write one file, or a folder of files, as a whole: the base class, and copies of files."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.errors import TargetError, VerificationError
from lakewright.lake.files import concatenate, copy_file, files_at
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.targets.context import Context
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.workspace.workspace import Workspace

__all__ = ["CopyFileTarget", "FileCopy", "FileOutput", "GetFileTarget", "MergeFilesTarget", "PutFileTarget"]


class FileOutput(Target):
    """Writes a file in BUILD unless it is there, checks in VERIFY that it is, and removes it."""

    @abstractmethod
    def place(self, workspace: Workspace) -> str:
        """Return the path or URI of the file."""

    @abstractmethod
    def write(self, context: Context, place: str) -> Outcome:
        """Write the file; readers see it when it is complete."""

    def phases(self) -> frozenset[Phase]:
        """Return BUILD, VERIFY, TRUNCATE and DESTROY."""
        return frozenset({Phase.BUILD, Phase.VERIFY, Phase.TRUNCATE, Phase.DESTROY})

    def inputs(self, workspace: Workspace) -> frozenset[Resource]:
        """Return the resources that are read in BUILD."""
        return frozenset()

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that are read; in VERIFY, the file."""
        if phase is Phase.VERIFY:
            return frozenset({Resource.file(self.place(workspace))})
        return self.inputs(workspace)

    def provides(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the file."""
        return frozenset() if phase is Phase.VERIFY else frozenset({Resource.file(self.place(workspace))})

    def builds_rows(self, workspace: Workspace) -> bool:
        """Return True: it writes a file."""
        return True

    def observe(self, context: Context) -> Observation:
        """Return whether the file is there."""
        place = self.place(context.workspace)
        found = Answer.of(files_at(place, context.workspace.lake).exists(place))
        return Observation(f"file:{place}", exists=found, filled=found)

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Write the file, check that it is there, or remove it.

        Raises:
            VerificationError: The file isn't there.
        """
        if phase is Phase.VERIFY:
            if self.observe(context).exists is not Answer.YES:
                raise VerificationError(
                    f"{self.label}: {self.place(context.workspace)} does not exist", remedy="Run BUILD."
                )
            return Outcome()
        return self.in_lease(context, phase, self._work)

    def _work(self, context: Context, phase: Phase) -> Outcome:
        place = self.place(context.workspace)
        if phase is Phase.BUILD:
            return self.write(context, place)
        files_at(place, context.workspace.lake).remove(place)
        return Outcome()


class FileCopy(FileOutput):
    """Makes one file, or a folder of files, of another."""

    source: str = Declared(description="Path or URI of what is read, from the project's folder.")
    target: str = Declared(description="Path or URI of what is written.")
    overwrite: bool = Declared(default=True, description="Whether BUILD may replace a file that is there.")

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
    """Copies a file, or a folder with everything below it, on any file systems that Spark knows."""

    def copy_from(self, lake: Lake, source: str, place: str) -> Outcome:
        """Copy the file."""
        copy_file(lake, source, place)
        return Outcome()


class GetFileTarget(CopyFileTarget):
    """Copies a file from a file system that Spark knows to this machine; the same as `copyFile`."""


class PutFileTarget(CopyFileTarget):
    """Copies a file of this machine to a file system that Spark knows; the same as `copyFile`."""


class MergeFilesTarget(FileCopy):
    """Writes the files of a folder to one file, in the order of their names."""

    source: str = Declared(description="Folder; its hidden files and `_SUCCESS` are left out.")
    delimiter: str = Declared(default="", description="Text between two files.")

    def copy_from(self, lake: Lake, source: str, place: str) -> Outcome:
        """Write the one file."""
        return Outcome(metrics={"files": concatenate(lake, source, place, self.delimiter.encode())})
