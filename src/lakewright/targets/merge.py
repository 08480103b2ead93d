"""The `merge` target: a mapping's rows merged into a Delta table, clause by clause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BeforeValidator, model_validator
from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.lake.partition import canonical_partition
from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.observation import Observation
from lakewright.plan.outcome import Outcome
from lakewright.relations.delta import DeltaRelation
from lakewright.relations.delta_merge import Clause
from lakewright.spec.models.base import Listed, Model, TextMap, Texts
from lakewright.targets.context import Context
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.relation import RelationTarget

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["MergeClause", "MergeTarget"]


def _lower(declared: object) -> object:
    return declared.strip().lower() if isinstance(declared, str) else declared


class MergeClause(Model):
    """What is done with rows that meet a condition."""

    action: Annotated[Literal["insert", "update", "delete"], BeforeValidator(_lower)] = Declared(
        description="insert rows without a match; update or delete matched ones."
    )
    condition: str | None = Declared(
        default=None, description="SQL condition on `source` and `target`; all rows unless given."
    )
    columns: TextMap = Declared(
        default_factory=dict,
        description="SQL expression for each column to set; columns of the same name unless given.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.action == "delete" and self.columns:
            raise ValueError("a clause that deletes sets no `columns`")
        return self


class MergeTarget(RelationTarget):
    """Merges a mapping's rows, `source`, into a Delta relation, `target`, in one commit."""

    merge_key: Texts = Declared(
        default=(), description="Columns by which rows match; the relation's unless given."
    )
    condition: str | None = Declared(
        default=None, description="SQL condition by which rows match, in place of a key."
    )
    clauses: Listed[MergeClause] = Declared(
        min_length=1, description="What is done with the rows, first match first."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.mapping is None:
            raise ValueError("a merge target has a `mapping`")
        if self.merge_key and self.condition is not None:
            raise ValueError("a merge target has one of `mergeKey` and `condition`")
        return self

    def output(self, workspace: Workspace) -> DeltaRelation:
        """Return the relation.

        Raises:
            SpecError: It isn't a Delta relation.
        """
        relation = super().output(workspace)
        if not isinstance(relation, DeltaRelation):
            raise SpecError.of(
                f"{self.label}: rows can't be merged into a relation of kind {relation.kind!r}",
                remedy="Name one of kind delta.",
            )
        return relation

    def build_dirtiness(self, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return that the target must run: what is merged is only known then."""
        del observation, defaults
        return Dirtiness.yes("a merge always runs")

    def _build(self, context: Context) -> Outcome:
        relation, workspace = self.output(context.workspace), context.workspace
        counts = relation.merge(
            workspace,
            self._frame(context),
            key=self.merge_key,
            condition=self.condition,
            clauses=[Clause(each.action, each.condition, each.columns) for each in self.clauses],
            partition=canonical_partition(relation.partitions, self.partition),
        )
        return Outcome(metrics=counts)
