"""The `truncate` target: empties a relation, or some of its partitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field as Declared

from lakewright.errors import SpecError, VerificationError
from lakewright.lake.partition import Selection, expand_selection
from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.observation import Answer, Observation, OutputState
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.relations.relation import Relation, StoredRelation
from lakewright.spec.models.base import Reference
from lakewright.targets.context import Context
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.target import Target
from lakewright.workspace.reference import RelationReference, referenced

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["TruncateTarget"]


class TruncateTarget(Target):
    """Empties a relation or partitions in BUILD and in TRUNCATE; VERIFY fails if any rows are left."""

    deferred: ClassVar[frozenset[str]] = frozenset({"relation.pattern"})

    relation: RelationReference = Declared(description="Name of the relation, or the relation itself.")
    partitions: Selection = Declared(
        default_factory=dict,
        description="Values, lists or ranges (both ends included); by default all partitions.",
    )

    def references(self) -> Iterable[Reference]:
        """Return the relation."""
        return referenced(self.relation)

    def phases(self) -> frozenset[Phase]:
        """Return BUILD, VERIFY and TRUNCATE."""
        return frozenset({Phase.BUILD, Phase.VERIFY, Phase.TRUNCATE})

    def stored(self, workspace: Workspace) -> StoredRelation:
        """Return the relation.

        Raises:
            SpecError: The relation holds no rows of its own.
        """
        relation = Relation.named(workspace, self.relation)
        if not isinstance(relation, StoredRelation):
            raise SpecError.of(f"{self.label}: a relation of kind {relation.kind!r} holds no rows of its own")
        return relation

    def _selected(self, workspace: Workspace) -> tuple[dict[str, str], ...]:
        relation = self.stored(workspace)
        self.check_partition(workspace, relation, self.partitions, "partitions")
        return expand_selection(relation.partitions, self.partitions) or ({},)

    def provides(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the partitions that are emptied, or the whole relation."""
        if phase is Phase.VERIFY:
            return frozenset()
        relation = self.stored(workspace)
        return frozenset().union(*(relation.resources(workspace, each) for each in self._selected(workspace)))

    def observe(self, context: Context) -> Observation:
        """Return whether rows are left; `filled` is inverted: YES if there are none, as BUILD leaves it."""
        found = self._filled(context.workspace)
        subject = f"truncate {self.name}: {', '.join(sorted(found))}"
        if Answer.YES in found.values():
            return Observation(subject, exists=Answer.YES, filled=Answer.NO)
        unknown = Answer.UNKNOWN in found.values()
        return Observation(subject, exists=Answer.YES, filled=Answer.UNKNOWN if unknown else Answer.YES)

    def _filled(self, workspace: Workspace) -> dict[str, Answer]:
        relation = self.stored(workspace)
        observations = [relation.observe(workspace, each) for each in self._selected(workspace)]
        return {each.subject: each.filled for each in observations}

    def dirtiness(self, phase: Phase, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether there are rows to remove."""
        if phase is Phase.VERIFY:
            return super().dirtiness(phase, observation, defaults)
        if observation.error is not None:
            return Dirtiness.unknown(observation.error)
        if observation.filled is Answer.UNKNOWN:
            return Dirtiness.unknown("whether it holds rows is unknown")
        if observation.filled is Answer.YES:
            return Dirtiness.no(OutputState.EMPTY)
        return Dirtiness.yes("holds rows")

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Remove the rows, or in VERIFY check that there are none."""
        if phase is Phase.VERIFY:
            found = self._filled(context.workspace).items()
            filled = [subject for subject, answer in found if answer is Answer.YES]
            if filled:
                raise VerificationError(f"{self.label}: not empty: {', '.join(filled)}", remedy="Run BUILD.")
            return Outcome()
        return self.in_lease(context, phase, self._empty)

    def _empty(self, context: Context, phase: Phase) -> Outcome:
        for partition in self._selected(context.workspace):
            self.stored(context.workspace).truncate(context.workspace, partition)
        return Outcome()
