"""The base class of targets that write one file, or a folder of files, as a whole."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from lakewright.errors import TargetError, VerificationError
from lakewright.lake.files import files_at
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.targets.context import Context
from lakewright.targets.lease import hold_leases
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["FileOutput"]


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
        del workspace
        return frozenset()

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that are read; in VERIFY, the file."""
        if phase is Phase.VERIFY:
            return frozenset({Resource.file(self.place(workspace))})
        return self.inputs(workspace)

    def provides(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the file."""
        return frozenset() if phase is Phase.VERIFY else frozenset({Resource.file(self.place(workspace))})

    def observe(self, context: Context) -> Observation:
        """Return whether the file is there."""
        place = self.place(context.workspace)
        found = Answer.of(files_at(place, context.workspace.lake).exists(place))
        return Observation(f"file:{place}", exists=found, filled=found)

    def check_copy(self, context: Context, source: str, place: str, *, may_replace: bool) -> None:
        """Check that the source of a copy exists, that the copy may be written, and that the run goes on.

        Raises:
            TargetError: The source doesn't exist, or the copy does and may not be replaced.
        """
        lake = context.workspace.lake
        if not files_at(source, lake).exists(source):
            raise TargetError(f"{self.label}: {source} does not exist", remedy="Check `source`.")
        if not may_replace and files_at(place, lake).exists(place):
            raise TargetError(f"{self.label}: {place} exists already", remedy="Set overwrite: true.")
        lake.check_commit()

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Write the file, check that it is there, or remove it.

        Raises:
            VerificationError: The file isn't there.
        """
        workspace = context.workspace
        place = self.place(workspace)
        files = files_at(place, workspace.lake)
        if phase is Phase.VERIFY:
            if not files.exists(place):
                raise VerificationError(f"{self.label}: {place} does not exist", remedy="Run BUILD.")
            return Outcome()
        resources = self.provides(workspace, phase)
        with hold_leases(context, resources):
            outcome = Outcome()
            if phase is Phase.BUILD:
                outcome = self.write(context, place)
            else:
                files.remove(place)
        workspace.invalidate(resources)
        return outcome
