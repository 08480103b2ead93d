"""The `merge` target: merges a mapping's rows into a Delta table, by a list of clauses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BeforeValidator, model_validator
from pydantic import Field as Declared

from lakewright.errors import SpecError
from lakewright.errors.phrase import Phrase
from lakewright.lake.partition import canonical_partition
from lakewright.plan.dirtiness import Dirtiness
from lakewright.plan.observation import Observation
from lakewright.plan.outcome import Outcome
from lakewright.relations.delta import DeltaRelation
from lakewright.relations.delta_write import Clause
from lakewright.relations.relation import OutputMode
from lakewright.spec.models.base import Listed, Model, TextMap, Texts, lower
from lakewright.spec.models.text_marks import SqlText
from lakewright.targets.context import Context
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.relation import RelationTarget
from lakewright.targets.writing import observed_measures

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace

__all__ = ["MergeClause", "MergeTarget"]


class MergeClause(Model):
    """An action on the rows that meet a condition."""

    action: Annotated[Literal["insert", "update", "delete"], BeforeValidator(lower)] = Declared(
        description="insert rows without a match; update or delete matched rows."
    )
    condition: Annotated[str | None, SqlText.CONDITION] = Declared(
        default=None, description="SQL condition on `source` and `target`; by default all rows."
    )
    columns: Annotated[TextMap, SqlText.EXPRESSION] = Declared(
        default_factory=dict,
        description="SQL expression for each column to set; by default the source column of the same name.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.action == "delete" and self.columns:
            raise ValueError("a delete clause cannot have `columns`")
        return self


class MergeTarget(RelationTarget):
    """Merges a mapping's rows, `source`, into a Delta relation, `target`, in one commit.

    If the relation declares no schema, the first rows decide the table's columns. A clause without `columns`
    sets those that both have; a run warns of columns that the table lacks.
    """

    merge_key: Texts = Declared(
        default=(), description="Columns by which rows match; by default the merge key of the relation."
    )
    condition: Annotated[str | None, SqlText.CONDITION] = Declared(
        default=None, description="SQL condition by which rows match, instead of a key."
    )
    clauses: Listed[MergeClause] = Declared(
        min_length=1, description="Actions on the rows; the first clause that matches a row applies."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.mapping is None:
            raise ValueError("a merge target needs a `mapping`")
        if self.merge_key and self.condition is not None:
            raise ValueError("a merge target cannot have both `mergeKey` and `condition`")
        return self

    def output(self, workspace: Workspace) -> DeltaRelation:
        """Return the relation.

        Raises:
            SpecError: The relation is not a Delta table.
        """
        relation = super().output(workspace)
        if not isinstance(relation, DeltaRelation):
            raise SpecError.of(
                f"{self.label}: rows cannot be merged into a relation of kind {relation.kind!r}",
                remedy="Name a relation of kind delta.",
            )
        return relation

    def mode_of(self, defaults: TargetDefaults) -> OutputMode:
        """Return that rows are updated: those that no row matches stay."""
        return OutputMode.UPDATE

    def build_dirtiness(self, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return that the target always runs, because only the merge itself shows whether rows change."""
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
            warn=lambda text: context.warn(Phrase(f"{self.label}: ", text)),
        )
        return Outcome(metrics={**counts, **observed_measures(workspace, self.mapping or "")})
