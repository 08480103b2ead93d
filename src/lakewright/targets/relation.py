"""Targets that write the rows of a mapping into a relation, or into files that no relation describes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, model_validator
from pydantic import Field as Declared

from lakewright.errors.phrase import Phrase
from lakewright.lake.delta_sql import Clause
from lakewright.lake.partition import canonical_partition
from lakewright.plan.dirtiness import Dirtiness, create_dirtiness
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code
from lakewright.plan.resource import Resource
from lakewright.plan.status import Status
from lakewright.relations.catalog import ViewRelation, WaitingView
from lakewright.relations.delta import DeltaRelation
from lakewright.relations.file import FileFormat, FileRelation
from lakewright.relations.relation import OutputMode, Relation
from lakewright.schema.types import Scalar
from lakewright.spec.models.base import Listed, Model, TextMap, Texts, lower
from lakewright.spec.models.fields import PartitionField
from lakewright.spec.models.text_marks import SqlText
from lakewright.spec.reason import Reason
from lakewright.targets.context import Context, TargetDefaults
from lakewright.targets.writing import WritingTarget
from lakewright.workspace.readable_parts import RelationReference

if TYPE_CHECKING:
    from lakewright.workspace.workspace import Workspace


class RelationTarget(WritingTarget):
    """Creates or migrates a relation, writes a mapping's rows into it, and checks that it has rows.

    Without a mapping the target only creates, checks and removes the relation.
    """

    deferred: ClassVar[frozenset[str]] = frozenset({"relation.pattern"})

    relation: RelationReference = Declared(description="The relation, or its name.")

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
            is_new = observation.exists is Answer.NO
            made = Reason(Code.MADE_IN_BUILD, {"is_new": is_new, "inputs": observation.inputs})
            return Dirtiness.no(made)
        if self.mapping is None and phase is Phase.BUILD:
            return create_dirtiness(observation)
        return super().dirtiness(phase, observation, defaults)

    def _create(self, context: Context) -> Outcome:
        workspace = context.workspace
        relation = self.managed(workspace)
        observed = relation.observe(workspace) if isinstance(relation, ViewRelation) else None
        if isinstance(observed, WaitingView) and observed.inputs:
            return Outcome(Status.SKIPPED, reasons=(Reason(Code.INPUTS_ABSENT, {"inputs": observed.inputs}),))
        return super()._create(context)

    def _build(self, context: Context) -> Outcome:
        return self._create(context) if self.is_view(context.workspace) else super()._build(context)


class FileTarget(WritingTarget):
    """Writes files to a location; with a partition, to a folder named after it."""

    location: str = Declared(description="Folder.")
    format: FileFormat = Declared(default="csv", description="Format of the files.")
    options: TextMap = Declared(default_factory=dict, description="Options of Spark for the format.")

    def output(self, workspace: Workspace) -> FileRelation:
        """Return the files as a relation."""
        return FileRelation(
            name=self.name,
            kind="file",
            location=self.location,
            format=self.format,
            options=self.options,
            partitions=tuple(PartitionField(name=name, type=Scalar("string")) for name in self.partition),
        )


class MergeClause(Model):
    """An action on the rows that meet a condition."""

    action: Annotated[Literal["insert", "update", "delete"], BeforeValidator(lower)] = Declared(
        description="What to do; insert is for rows without a match."
    )
    condition: Annotated[str | None, SqlText.CONDITION] = Declared(
        default=None, description="SQL condition on `source` and `target`; default: all rows."
    )
    columns: Annotated[TextMap, SqlText.EXPRESSION] = Declared(
        default_factory=dict,
        description="SQL expression for each column; default: the source's column.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.action == "delete" and self.columns:
            raise ValueError("a delete clause cannot have `columns`")
        return self


class MergeTarget(RelationTarget):
    """Merges a mapping's rows, `source`, into a Delta relation, `target`, in one commit.

    A clause without `columns` sets those that both have, with a warning.
    """

    merge_key: Texts = Declared(
        default=(), description="Columns by which rows match; default: the relation's."
    )
    condition: Annotated[str | None, SqlText.CONDITION] = Declared(
        default=None, description="SQL condition by which rows match, instead of a key."
    )
    clauses: Listed[MergeClause] = Declared(
        min_length=1, description="Actions on rows; the first that matches a row applies."
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
        return DeltaRelation.of(super().output(workspace), self.label)

    def mode_of(self, defaults: TargetDefaults) -> OutputMode:
        """Return that rows are updated: those that no row matches stay."""
        return OutputMode.UPDATE

    def build_dirtiness(self, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return that the target always runs, because only the merge itself shows whether rows change."""
        return Dirtiness.yes(Reason(Code.KIND_ALWAYS_RUNS, {"kind": self.kind}))

    def _build(self, context: Context) -> Outcome:
        relation, workspace = self.output(context.workspace), context.workspace
        counts = relation.merge(
            workspace,
            self.outgoing(context),
            key=self.merge_key,
            condition=self.condition,
            clauses=[Clause(each.action, each.condition, each.columns) for each in self.clauses],
            partition=canonical_partition(relation.partitions, self.partition),
            warn=lambda text: context.warn(Phrase(f"{self.label}: ", text)),
        )
        return Outcome(metrics={**counts, **self._observed(context)})
