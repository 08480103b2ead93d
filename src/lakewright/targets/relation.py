"""The `relation` target: creates a relation, and writes a mapping's rows into it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field as Declared

from lakewright.plan.dirtiness import Dirtiness, create_dirtiness
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.plan.status import Status
from lakewright.relations.catalog import ViewRelation, WaitingView
from lakewright.relations.relation import Relation
from lakewright.spec.models.base import Reference
from lakewright.targets.context import Context
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.writing import WritingTarget
from lakewright.workspace.reference import RelationReference, referenced

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["RelationTarget"]


class RelationTarget(WritingTarget):
    """Creates or migrates a relation, writes a mapping's rows into it, and checks that it holds rows.

    Without a mapping the target only creates, checks and removes the relation.
    """

    deferred: ClassVar[frozenset[str]] = frozenset({"relation.pattern"})

    relation: RelationReference = Declared(description="Name of the relation, or the relation itself.")

    def references(self) -> Iterable[Reference]:
        """Return the mapping and the relation."""
        return [*super().references(), *referenced(self.relation)]

    def output(self, workspace: Workspace) -> Relation:
        """Return the relation."""
        return Relation.named(workspace, self.relation)

    def phases_in(self, workspace: Workspace) -> frozenset[Phase]:
        """Return the phases; a view also has BUILD, which creates it if inputs were missing in CREATE."""
        return self.phases() | ({Phase.BUILD} if self.is_view(workspace) else frozenset())

    def is_view(self, workspace: Workspace) -> bool:
        """Return whether the relation is a view, which holds no rows: they are computed when it is read."""
        return self.mapping is None and isinstance(self.output(workspace), ViewRelation)

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that creating the relation, or the mapping, reads."""
        found = super().requires(workspace, phase)
        if phase is Phase.BUILD and self.is_view(workspace):
            found |= self.managed(workspace).requires(workspace)
        return found

    def dirtiness(self, phase: Phase, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether the target must run; a view waits until its inputs exist."""
        if isinstance(observation, WaitingView) and observation.inputs and phase is Phase.CREATE:
            made = "created" if observation.exists is Answer.NO else "made anew"
            return Dirtiness.no(f"is {made} in BUILD, when {', '.join(observation.inputs)} exists")
        if self.mapping is None and phase is Phase.BUILD:
            return create_dirtiness(observation)
        return super().dirtiness(phase, observation, defaults)

    def _create(self, context: Context) -> Outcome:
        workspace = context.workspace
        relation = self.managed(workspace)
        observed = relation.observe(workspace) if isinstance(relation, ViewRelation) else None
        if isinstance(observed, WaitingView) and observed.inputs:
            return Outcome(Status.SKIPPED, reasons=(f"{', '.join(observed.inputs)} does not exist yet",))
        return super()._create(context)

    def _build(self, context: Context) -> Outcome:
        return self._create(context) if self.is_view(context.workspace) else super()._build(context)
