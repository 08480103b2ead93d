"""The `deltaVacuum` target: removes files that a Delta table no longer needs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field as Declared
from pydantic import model_validator

from lakewright.errors import SpecError
from lakewright.lake.observation import delta_table
from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.observation import Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.relations.delta import DeltaRelation
from lakewright.relations.relation import Relation
from lakewright.spec.models.base import Reference
from lakewright.targets.context import Context
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.lease import hold_leases
from lakewright.targets.target import DurationText, Target
from lakewright.workspace.reference import RelationReference, referenced

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["DeltaVacuumTarget"]


SHORTEST_HOURS = 7 * 24
"""Delta's own default, below which it refuses or warns, depending on its version."""


class DeltaVacuumTarget(Target):
    """Removes the files that no version of a Delta table within the retention needs, in BUILD."""

    deferred: ClassVar[frozenset[str]] = frozenset({"relation.pattern"})

    relation: RelationReference = Declared(description="Name of the relation, or the relation itself.")
    retention_time: DurationText | None = Declared(
        default=None,
        description="How long former versions stay readable, at least a week; default: as the table says.",
    )
    compaction: bool = Declared(default=False, description="Merge small files first.")
    min_files: int = Declared(
        default=16, ge=1, description="Accepted for Flowman's projects; Delta chooses the sizes of files."
    )
    max_files: int = Declared(default=64, ge=1, description="Compact only if the table has more files.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.retention_time is not None and self._hours() < SHORTEST_HOURS:
            raise ValueError(
                f"a retentionTime of {self.retention_time} is shorter than a week: who reads a former "
                "version, or writes meanwhile, would lose its files"
            )
        return self

    def references(self) -> Iterable[Reference]:
        """Return the relation."""
        return referenced(self.relation)

    def phases(self) -> frozenset[Phase]:
        """Return BUILD."""
        return frozenset({Phase.BUILD})

    def table(self, workspace: Workspace) -> DeltaRelation:
        """Return the relation.

        Raises:
            SpecError: It isn't a Delta table.
        """
        relation = Relation.named(workspace, self.relation)
        if not isinstance(relation, DeltaRelation):
            raise SpecError.of(f"{self.label}: {relation.label} is no Delta table", remedy="Name one.")
        return relation

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the table: it is cleaned after it has been written."""
        return self.table(workspace).resources(workspace)

    def build_dirtiness(self, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return that the target always runs."""
        return Dirtiness.yes("a deltaVacuum target always runs")

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Merge small files if there are many, and remove the files that are no longer needed."""
        workspace = context.workspace
        relation = self.table(workspace)
        with hold_leases(context, relation.resources(workspace)):
            table: Any = delta_table(workspace.spark, relation.address(workspace))
            files = int(table.detail().select("numFiles").first()[0] or 0)
            is_compacted = self.compaction and files > self.max_files
            if is_compacted:
                table.optimize().executeCompaction()
            table.vacuum(None if self.retention_time is None else self._hours())
        workspace.invalidate(relation.resources(workspace))
        return Outcome(metrics={"files_before": files, "compactions": int(is_compacted)})

    def _hours(self) -> float:
        seconds = self.retention_time.exact.total_seconds() if self.retention_time else 0.0
        return float(math.ceil(seconds / 3600))
