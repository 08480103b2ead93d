"""The `copy` target: copies the rows of one dataset to another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field as Declared

from lakewright.lake.columns import fields_of
from lakewright.lake.files import LocalFiles
from lakewright.lake.partition import Partition
from lakewright.plan.observation import Observation
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.resource import Resource
from lakewright.relations.relation import StoredRelation
from lakewright.schemas.spark import as_spark_json
from lakewright.spec.models.base import KindOf, Model, RefersTo, from_text
from lakewright.targets.context import Context
from lakewright.targets.datasets import Dataset, FileDataset, MappingDataset, RelationDataset
from lakewright.targets.writing import OutputModeText, RowTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.workspace.workspace import Workspace


class SchemaFile(Model):
    """A file that describes the columns of the copied rows."""

    format: Annotated[Literal["spark"], from_text(str.lower)] = Declared(
        default="spark", description="Format of the description."
    )
    file: str = Declared(description="Path of the file.")


class CopyTarget(RowTarget):
    """Copies rows in BUILD; TRUNCATE and DESTROY remove them."""

    own_phases: ClassVar[frozenset[Phase]] = frozenset(
        {Phase.BUILD, Phase.VERIFY, Phase.TRUNCATE, Phase.DESTROY}
    )

    source: Annotated[Dataset, KindOf("dataset"), RefersTo.INSIDE] = Declared(description="Dataset to copy.")
    target: Annotated[Dataset, KindOf("dataset"), RefersTo.INSIDE] = Declared(
        description="Dataset to copy to: file or relation."
    )
    mode: OutputModeText | None = Declared(default=None, description="What happens to existing rows.")
    schema_file: SchemaFile | None = Declared(
        default=None, alias="schema", description="File to write a description of the columns to."
    )
    parallelism: int | None = Declared(
        default=None, description="Largest number of files to write; 0: Spark decides."
    )
    rebalance: bool | None = Declared(default=None, description="Distribute the rows evenly over the files.")

    def requires(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that the source reads; in VERIFY, those of the target."""
        for side, dataset in (("source", self.source), ("target", self.target)):
            if isinstance(dataset, RelationDataset):
                self.check_partition(
                    workspace, dataset.source(workspace), dataset.partition, side, "partition"
                )
        return (self.target if phase is Phase.VERIFY else self.source).requires(workspace)

    def places(self, workspace: Workspace, phase: Phase) -> frozenset[Resource]:
        """Return the resources that hold the target's rows."""
        relation, partition = self.target.stored(workspace)
        return relation.resources(workspace, partition)

    def observe(self, context: Context) -> Observation:
        """Return whether the target exists and holds rows."""
        relation, partition = self.target.stored(context.workspace)
        return relation.observe(context.workspace, partition)

    def destination(self, workspace: Workspace) -> tuple[StoredRelation, Partition]:
        """Return the relation and the partition of the target."""
        return self.target.stored(workspace)

    def read_rows(self, workspace: Workspace) -> DataFrame:
        """Return the rows of the source, after their columns are described in the file for that."""
        frame = self.source.read(workspace)
        if self.schema_file is not None:
            text = json.dumps(as_spark_json(fields_of(frame.schema)), indent=2) + "\n"
            LocalFiles().write(workspace.resolve_location(self.schema_file.file), text.encode())
        return frame

    def mapping_read(self) -> str | None:
        """Return the mapping, if the source is one."""
        return self.source.mapping if isinstance(self.source, MappingDataset) else None

    def work(self, context: Context, phase: Phase) -> Outcome:
        """Copy the rows, or remove them."""
        if phase is Phase.BUILD:
            return self._build(context)
        workspace = context.workspace
        relation, partition = self.target.stored(workspace)
        if phase is Phase.DESTROY and isinstance(self.target, FileDataset):
            relation.destroy(workspace)
        else:
            relation.truncate(workspace, partition)
        if phase is Phase.DESTROY and self.schema_file is not None:
            Path(workspace.resolve_location(self.schema_file.file)).unlink(missing_ok=True)
        return Outcome()
