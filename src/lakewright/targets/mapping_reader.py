"""The base class of targets that read all rows of a mapping in BUILD and keep nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lakewright.mappings.mapping import Input
from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.observation import Observation
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.spec.models.base import Reference
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.target import Target

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["MappingReader"]


class MappingReader(Target):
    """Runs in each BUILD, as it leaves nothing by which a later run could tell that it is done."""

    mapping: Input

    def references(self) -> Iterable[Reference]:
        """Return the mapping."""
        return [Reference("mapping", self.mapping, ("mapping",))]

    def phases(self) -> frozenset[Phase]:
        """Return BUILD."""
        return frozenset({Phase.BUILD})

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that the mapping reads."""
        return workspace.required(self.mapping)

    def build_dirtiness(self, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return that the target always runs."""
        return Dirtiness.yes(f"a {self.kind} target always runs")
