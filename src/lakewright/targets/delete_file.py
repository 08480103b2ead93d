"""The `deleteFile` target: removes a file or folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field as Declared

from lakewright.errors import SpecError, TargetError
from lakewright.lake.files import Files, files_at
from lakewright.lake.paths import join, local_path
from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.observation import Answer, Observation, OutputState
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.targets.context import Context
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["DeleteFileTarget"]


class DeleteFileTarget(Target):
    """Removes a file or folder in BUILD, if it exists."""

    location: str = Declared(
        min_length=1, description="Path or URI; a path is relative to the project's folder."
    )
    recursive: bool = Declared(default=True, description="Whether a folder that holds files is removed too.")

    def phases(self) -> frozenset[Phase]:
        """Return BUILD."""
        return frozenset({Phase.BUILD})

    def place(self, workspace: Workspace) -> str:
        """Return what is removed.

        Raises:
            SpecError: The project's folder lies in it.
        """
        place = workspace.resolve_location(self.location)
        local = local_path(place)
        if local is not None and Path(workspace.project.basedir).is_relative_to(local.resolve()):
            raise SpecError.of(
                f"{self.label}: {place} holds the project itself", remedy="Name a folder below it."
            )
        return place

    def provides(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return what is removed."""
        return frozenset({Resource.file(self.place(workspace))})

    def observe(self, context: Context) -> Observation:
        """Return whether it exists."""
        place = self.place(context.workspace)
        found = Answer.of(files_at(place, context.workspace.lake).exists(place))
        return Observation(f"delete:{place}", exists=found, filled=found)

    def build_dirtiness(self, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether there is anything to remove."""
        if observation.error is not None:
            return Dirtiness.unknown(observation.error)
        is_there = observation.exists is not Answer.NO
        return Dirtiness.yes(OutputState.PRESENT) if is_there else Dirtiness.no(OutputState.MISSING)

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Remove it.

        Raises:
            TargetError: It is a folder that holds files, and `recursive` is false.
        """
        workspace, place = context.workspace, self.place(context.workspace)
        files = files_at(place, workspace.lake)
        if not self.recursive and _is_filled(files, place):
            raise TargetError(f"{self.label}: {place} holds files", remedy="Set recursive: true.")
        return self.in_lease(context, phase, self._remove)

    def _remove(self, context: Context, phase: Phase) -> Outcome:
        place = self.place(context.workspace)
        files_at(place, context.workspace.lake).remove(place)
        return Outcome()


def _is_filled(files: Files, place: str) -> bool:
    """Return whether a place is a folder that holds files."""
    return any(
        join(place, entry.name) != place and files.exists(join(place, entry.name))
        for entry in files.listed(place)
    )
