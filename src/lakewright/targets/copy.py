"""The `copy` target: copies the rows of one dataset to another."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field as Declared

from lakewright.errors import VerificationError
from lakewright.errors.phrase import Phrase
from lakewright.lake.columns import fields_of
from lakewright.lake.partition import within_partition
from lakewright.plan.dirtiness import Dirtiness, build_dirtiness
from lakewright.plan.observation import Answer, Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.plan.step import Append
from lakewright.relations.relation import OutputMode
from lakewright.schemas.spark import as_spark_json
from lakewright.spec.models.base import KindOf, Model, Reference, from_text
from lakewright.targets.context import Context
from lakewright.targets.datasets import Dataset, FileDataset, MappingDataset, RelationDataset
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.target import Target
from lakewright.targets.writing import (
    OutputModeText,
    append_of,
    earlier_append,
    effective_mode,
    observed_measures,
    repartition,
    telling_misfits,
    telling_refusal,
    told_columns,
    write_rows,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace

__all__ = ["CopyTarget", "SchemaFile"]


class SchemaFile(Model):
    """A file that describes the columns of the copied rows."""

    format: Annotated[Literal["spark"], from_text(str.lower)] = Declared(
        default="spark", description="Format of the description."
    )
    file: str = Declared(description="Path of the file, relative to the project's folder.")


class CopyTarget(Target):
    """Copies rows in BUILD; TRUNCATE and DESTROY remove them."""

    source: Annotated[Dataset, KindOf("dataset")] = Declared(description="Dataset to copy.")
    target: Annotated[Dataset, KindOf("dataset")] = Declared(
        description="Dataset to copy to: file or relation."
    )
    mode: OutputModeText | None = Declared(
        default=None, description="What happens to rows that the target already holds."
    )
    schema_file: SchemaFile | None = Declared(
        default=None, alias="schema", description="File to write a description of the columns to."
    )
    parallelism: int | None = Declared(
        default=None, description="Largest number of files to write; 0 leaves it to Spark."
    )
    rebalance: bool | None = Declared(default=None, description="Distribute the rows evenly over the files.")

    def references(self) -> Iterable[Reference]:
        """Return what the datasets refer to."""
        return [*self.source.references_below("source"), *self.target.references_below("target")]

    def phases(self) -> frozenset[Phase]:
        """Return BUILD, VERIFY, TRUNCATE and DESTROY."""
        return frozenset({Phase.BUILD, Phase.VERIFY, Phase.TRUNCATE, Phase.DESTROY})

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that the source reads; in VERIFY, those of the target."""
        for side, dataset in (("source", self.source), ("target", self.target)):
            if isinstance(dataset, RelationDataset):
                self.check_partition(
                    workspace, dataset.source(workspace), dataset.partition, side, "partition"
                )
        return (self.target if phase is Phase.VERIFY else self.source).requires(workspace)

    def provides(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that hold the target's rows."""
        if phase is Phase.VERIFY:
            return frozenset()
        relation, partition = self.target.stored(workspace)
        return relation.resources(workspace, partition)

    def observe(self, context: Context) -> Observation:
        """Return whether the target exists and holds rows."""
        relation, partition = self.target.stored(context.workspace)
        return relation.observe(context.workspace, partition)

    def build_dirtiness(self, observation: Observation, defaults: TargetDefaults) -> Dirtiness:
        """Return whether the target must run in BUILD, by its build policy."""
        mode = self._mode(defaults)
        policy = self.policy(defaults)
        found = build_dirtiness(policy, observation, each_build=mode.each_build, is_partitioned=True)
        return telling_refusal(found, mode, observation)

    def _mode(self, defaults: TargetDefaults) -> OutputMode:
        return self.mode or defaults.output_mode

    def builds_rows(self, workspace: Workspace) -> bool:
        """Return True: it writes what it has copied."""
        return True

    def append(self, workspace: Workspace, defaults: TargetDefaults) -> Append | None:
        """Return that a build adds its rows to those that are there; None if it does not."""
        return append_of(self.target.stored(workspace)[0], self._mode(defaults))

    def has_appended(self, workspace: Workspace, append_id: str) -> bool:
        """Return whether the target holds the rows of an append of that identity."""
        relation, partition = self.target.stored(workspace)
        return relation.find_append(workspace, append_id, partition) is not None

    def execute(self, context: Context, phase: Phase) -> Outcome:
        """Copy the rows, check that the target exists, or remove the rows."""
        if phase is Phase.VERIFY:
            found = self.observe(context)
            if found.exists is Answer.NO:
                raise VerificationError(f"{self.label}: {found.subject} does not exist", remedy="Run BUILD.")
            return Outcome()
        work = self._build if phase is Phase.BUILD else self._remove
        return self.in_lease(context, phase, work)

    def _build(self, context: Context, phase: Phase) -> Outcome:
        workspace = context.workspace
        relation, partition = self.target.stored(workspace)
        mode, skipped = effective_mode(
            self.label, relation, workspace, partition=partition, mode=self._mode(context.defaults)
        )
        skipped = skipped or earlier_append(context, relation, partition=partition, mode=mode)
        if skipped is not None:
            return skipped
        frame = self.source.read(workspace)
        if self.schema_file is not None:
            self._write_schema(workspace, frame)
        frame = within_partition(frame, relation.partitions, partition)
        frame = repartition(frame, self.parallelism, self.rebalance, context.defaults)
        with telling_misfits(self.label, relation):
            summary = write_rows(context, relation, frame, partition=partition, mode=mode)
        for told in told_columns(relation, summary):
            context.warn(Phrase(f"{self.label}: ", told))
        source = self.source
        observed = observed_measures(workspace, source.mapping) if isinstance(source, MappingDataset) else {}
        return Outcome(metrics={"target_records": summary.rows, **observed})

    def _write_schema(self, workspace: Workspace, frame: DataFrame) -> None:
        file = Path(workspace.resolve_location(self.schema_file.file if self.schema_file else ""))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(as_spark_json(fields_of(frame.schema)), indent=2) + "\n", "utf-8")

    def _remove(self, context: Context, phase: Phase) -> Outcome:
        workspace = context.workspace
        relation, partition = self.target.stored(workspace)
        if phase is Phase.DESTROY and isinstance(self.target, FileDataset):
            relation.destroy(workspace)
        else:
            relation.truncate(workspace, partition)
        if phase is Phase.DESTROY and self.schema_file is not None:
            Path(workspace.resolve_location(self.schema_file.file)).unlink(missing_ok=True)
        return Outcome()
