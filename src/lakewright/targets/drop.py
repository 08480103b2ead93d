"""The `drop` target: removes a relation that is no longer used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field as Declared

from lakewright.errors import DataLossError, SpecError, VerificationError
from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.relations.relation import ManagedRelation, Relation
from lakewright.spec.models.base import Reference
from lakewright.targets.context import Context
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.target import Target
from lakewright.workspace.reference import RelationReference, referenced

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["DropTarget"]

_OPPOSITE = {Answer.YES: Answer.NO, Answer.NO: Answer.YES, Answer.UNKNOWN: Answer.UNKNOWN}


class DropTarget(Target):
    """Removes a relation in CREATE and in DESTROY; VERIFY fails if it still exists."""

    deferred: ClassVar[frozenset[str]] = frozenset({"relation.pattern"})

    relation: RelationReference = Declared(description="Name of the relation, or the relation itself.")

    def references(self) -> Iterable[Reference]:
        """Return the relation."""
        return referenced(self.relation)

    def phases(self) -> frozenset[Phase]:
        """Return CREATE, VERIFY and DESTROY."""
        return frozenset({Phase.CREATE, Phase.VERIFY, Phase.DESTROY})

    def managed(self, workspace: Workspace) -> ManagedRelation:
        """Return the relation.

        Raises:
            SpecError: The relation can only be read.
        """
        relation = Relation.named(workspace, self.relation)
        if not isinstance(relation, ManagedRelation):
            raise SpecError.of(f"{self.label}: a relation of kind {relation.kind!r} cannot be removed")
        return relation

    def provides(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the relation in the phases that remove it."""
        return frozenset() if phase is Phase.VERIFY else self.managed(workspace).resources(workspace)

    def observe(self, context: Context) -> Observation:
        """Return whether the relation has been removed.

        `exists` is inverted: it is YES once the relation is gone, as that is what CREATE achieves. `filled`
        says whether the relation exists, and DESTROY leaves it as NO.
        """
        found = self.managed(context.workspace).observe(context.workspace)
        if found.error is not None:
            return Observation(f"drop {found.subject}", error=found.error, warning=found.warning)
        return Observation(f"drop {found.subject}", exists=_OPPOSITE[found.exists], filled=found.exists)

    def dirtiness(self, phase: Phase, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether the relation exists and must be removed."""
        if phase is Phase.VERIFY:
            return super().dirtiness(phase, observation, defaults)
        if observation.error is not None:
            return Dirtiness.unknown(observation.error)
        is_there = _OPPOSITE[observation.exists] if phase is Phase.CREATE else observation.filled
        if is_there is Answer.UNKNOWN:
            return Dirtiness.unknown("whether it exists is unknown")
        return (
            Dirtiness.yes("exists, and must be removed")
            if is_there is Answer.YES
            else Dirtiness.no("has been removed")
        )

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Remove the relation, or in VERIFY check that it does not exist.

        Raises:
            DataLossError: The relation holds rows, and CREATE is not allowed to lose them.
        """
        workspace = context.workspace
        relation = self.managed(workspace)
        found = relation.observe(workspace)
        if phase is Phase.VERIFY:
            if found.exists is not Answer.NO:
                raise VerificationError(f"{self.label}: {found.subject} exists", remedy="Run CREATE.")
            return Outcome()
        is_loss = found.exists is not Answer.NO and found.filled is not Answer.NO
        if phase is Phase.CREATE and is_loss and not context.options.permissions.allow_data_loss:
            raise DataLossError(f"{self.label}: {found.subject} holds rows, which would be lost")
        return self.in_lease(context, phase, self._remove)

    def _remove(self, context: Context, phase: Phase) -> Outcome:
        self.managed(context.workspace).destroy(context.workspace)
        return Outcome()
